package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/patch"
)

// AgentDefaults hold for every agent that does not say otherwise.
type AgentDefaults struct {
	Sandbox string    `yaml:"sandbox" offers:"auto required off"`
	Network string    `yaml:"network" words:"open off"`
	Limits  RunLimits `yaml:"limits"`
}

// RunLimits are what one run of a program may use, with all that it starts.
type RunLimits struct {
	Memory    string `yaml:"memory"`                      // 2G
	Processes int    `yaml:"processes" range:"1 1048576"` // at once
	Files     string `yaml:"files"`                       // written into its own folders, 4G
	CPU       int    `yaml:"cpu" range:"1 1048576"`       // processors
}

// The least that a program can start with, and more than any machine has.
const (
	leastMemory = 16 << 20
	leastFiles  = 1 << 20
	mostSize    = 1 << 50
)

// confine reads what confines an agent's programs.
func (b *builder) confine(where []any, a Agent, s *agent.Spec) {
	d := b.file.Engine.AgentDefaults
	s.Sandbox = b.sandbox(append(where, "sandbox"), cmp.Or(a.Sandbox, d.Sandbox, agent.SandboxAuto))
	s.Network = cmp.Or(a.Network, d.Network, agent.NetworkOpen)
	if s.Network == agent.NetworkOff && s.Kind != agent.Command && !llm.RunsCommands(*s) {
		if a.Network != "" {
			b.bad(append(where, "network"), "agent %s: network: off is for agents of kind command, and for models with run_command; %s works over the network. Take it out.", s.Name, s.Kind)
		}
		s.Network = agent.NetworkOpen
	}
	s.Limits = b.runLimits(append(where, "limits"), a.Limits).Or(b.file.Engine.AgentDefaults.limits())
}

// sandbox checks one of the words.
func (b *builder) sandbox(where []any, word string) string {
	if word == "container" {
		b.bad(where, "sandbox: container is not built. Write auto, required or off; with required a program runs confined by bubblewrap or Landlock, or not at all.")
		return agent.SandboxRequired
	}
	b.oneOf(where, word, agent.SandboxAuto, agent.SandboxRequired, agent.SandboxOff)
	return word
}

// agentDefaults checks what engine.agent_defaults says, once and not for each agent.
func (b *builder) agentDefaults() agent.Limits {
	d := b.file.Engine.AgentDefaults
	where := at("engine", "agent_defaults")
	if d.Sandbox != "" {
		b.sandbox(append(where, "sandbox"), d.Sandbox)
	}
	return b.runLimits(append(where, "limits"), d.Limits)
}

// limits are the defaults' figures; agentDefaults has said what is wrong with them.
func (d AgentDefaults) limits() agent.Limits {
	memory, _ := sizeOf(d.Limits.Memory)
	files, _ := sizeOf(d.Limits.Files)
	return agent.Limits{Memory: memory, Processes: d.Limits.Processes, Files: files, CPU: d.Limits.CPU}
}

func (b *builder) runLimits(where []any, l RunLimits) agent.Limits {
	return agent.Limits{
		Memory:    b.size(append(where, "memory"), "memory", l.Memory, leastMemory),
		Processes: l.Processes,
		Files:     b.size(append(where, "files"), "files", l.Files, leastFiles),
		CPU:       l.CPU,
	}
}

func (b *builder) size(where []any, key, text string, least int64) int64 {
	if text == "" {
		return 0
	}
	n, ok := sizeOf(text)
	switch {
	case !ok:
		b.bad(where, "%s: %q is no size. Write a number with K, M, G or T, as in 2G.", key, text)
	case n < least || n > mostSize:
		b.bad(where, "%s: %s is out of range. Write %s or more.", key, text, agent.Size(least))
	}
	return n
}

var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?$`)

// sizeOf reads a size in powers of 1024.
func sizeOf(text string) (int64, bool) {
	m := sizeText.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(strings.ReplaceAll(text, "iB", "B"))))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
	n *= float64(int64(1) << shift)
	if err != nil || n > mostSize {
		return mostSize + 1, err == nil
	}
	return int64(n), true
}

// confined notes what confines an agent.
func confined(all map[string]string, key string, s agent.Spec) {
	all[key+"sandbox"], all[key+"network"] = s.Sandbox, s.Network
	l := s.Limits
	for name, value := range map[string]string{"memory": agent.Size(l.Memory), "processes": strconv.Itoa(l.Processes), "files": agent.Size(l.Files), "cpu": strconv.Itoa(l.CPU)} {
		if strings.HasPrefix(value, "0") {
			value = "no limit"
		}
		all[key+"limits."+name] = value
	}
}

// globs checks the patterns over paths of repositories, so that a bad one is no surprise
// when the first patch comes.
func (b *builder) globs() {
	check := func(patterns []string, path ...any) {
		for i, p := range patterns {
			if err := patch.CheckGlob(p); err != nil {
				b.bad(append(path, i), "%v. Write a path as .gitignore has it, such as docs/** or *.lock.", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.file.Repositories)) {
		check(b.file.Repositories[name].Protect, "repositories", name, "protect")
	}
	for _, name := range slices.Sorted(maps.Keys(b.file.Agents)) {
		check(b.file.Agents[name].Writes, "agents", name, "writes")
	}
}
