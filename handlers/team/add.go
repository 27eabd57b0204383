package team

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
	view "gatehouse/views/team"
)

// addAgent is what to do for another agent: the known programs with the one that was
// asked for, else the first that this machine has. Nothing is written; the file of the
// configuration belongs to people.
func (p *Pages) addAgent(wanted string) *view.AddAgent {
	conf := p.Engine.Config()
	var add view.AddAgent
	var chosen *command.Preset
	presets := command.Presets()
	for i := range presets {
		preset := &presets[i]
		row := view.PresetRow{Name: preset.Name, Title: preset.Title, Used: usersOf(conf, preset.Command[0])}
		// A program of the current folder is no answer: agents start in a checkout.
		if path, err := exec.LookPath(preset.Command[0]); err == nil {
			row.Path = path
		}
		add.Presets = append(add.Presets, row)
		if preset.Name == wanted || chosen == nil && wanted == "" && row.Path != "" {
			chosen, add.Chosen = preset, i
		}
	}
	if chosen == nil {
		chosen, add.Chosen = &presets[0], 0
	}
	repository := "app"
	if names := slices.Sorted(maps.Keys(conf.Repositories)); len(names) > 0 {
		repository = names[0]
	} else {
		add.NoRepository = true
	}
	chosen.Name = freeName(conf, chosen.Name)
	_, set := os.LookupEnv(chosen.Key)
	add.Agent, add.YAML, add.Program = chosen.Name, chosen.YAML(repository), chosen.Command[0]
	add.Key, add.KeySet, add.SignIn = chosen.Key, set, chosen.SignIn
	add.Notes, add.Played = chosen.Notes, chosen.Played
	return &add
}

// usersOf are the agents that run a program already.
func usersOf(conf *orchestrator.Config, program string) (names []string) {
	for _, s := range conf.Agents.All() {
		if s.Kind == agent.Command && len(s.Command) > 0 && filepath.Base(s.Command[0]) == program {
			names = append(names, s.Name)
		}
	}
	return names
}

// freeName is a name that no agent has: the configuration refuses a second one.
func freeName(conf *orchestrator.Config, name string) string {
	free := name
	for n := 2; ; n++ {
		if _, taken := conf.Agents.Get(free); !taken {
			return free
		}
		free = name + "-" + strconv.Itoa(n)
	}
}
