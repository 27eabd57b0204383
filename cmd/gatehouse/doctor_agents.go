package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/remote"
	"gatehouse/orchestrator/patch"
)

func checkProgram(ctx context.Context, a agent.Spec, checkouts map[string]checkout) finding {
	name := "agent " + a.Name
	if len(a.Command) == 0 {
		return finding{name, broke, "It has no command. Write command: [\"PROGRAM\"]."}
	}
	program := a.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return committed(ctx, a, checkouts)
	}
	found, err := exec.LookPath(program)
	if err != nil {
		return finding{name, broke, program + " is not found. Install it, or name its whole path in the agent's command."}
	}
	return finding{name, fine, found}
}

// trusting says what trust_checkout means for an agent.
func trusting(a agent.Spec) finding {
	name := "agent " + a.Name
	if a.AskFirst {
		return finding{name, fine, "trust_checkout: it runs its callers' files as they are, and a person is asked first"}
	}
	return finding{name, odd, "It has trust_checkout and nobody is asked before it works, so any agent that hands it work chooses what it runs. Add ask_first: true, or remove trust_checkout."}
}

// committed looks for a program that the agent's checkout has to bring.
func committed(ctx context.Context, a agent.Spec, checkouts map[string]checkout) finding {
	name, program := "agent "+a.Name, a.Command[0]
	if a.Repository == "" {
		return finding{name, odd, program + " comes from the repository that a task names; this agent has none of its own."}
	}
	at, known := checkouts[a.Repository]
	if !known {
		return finding{name, odd, program + " comes from the repository " + a.Repository + ", which cannot be looked into. Mend that first."}
	}
	file := path.Clean(program)
	where := "branch " + at.head.Branch + " of " + a.Repository
	if strings.HasPrefix(file, "../") {
		return finding{name, broke, program + " is outside of the checkout, where the agent finds nothing. Commit it to " + where + ", or name its whole path."}
	}
	entry, err := at.mirror.EntryAt(ctx, at.head.Tree, file)
	switch {
	case err != nil:
		return finding{name, broke, program + " cannot be looked for: " + err.Error()}
	case entry == patch.NoEntry && a.TrustCheckout:
		return finding{name, odd, program + " is not in " + where + ": it runs only where its caller brings it (trust_checkout). A task that is sent to it fails."}
	case entry == patch.NoEntry:
		return finding{name, broke, program + " is not in " + where + ". Commit it there, or change the agent's command."}
	case entry == patch.Plain:
		return finding{name, broke, program + " in " + where + " is not executable. Run chmod +x and commit it."}
	case entry == patch.Folder:
		return finding{name, broke, program + " in " + where + " is a folder. Name a program."}
	}
	return finding{name, fine, program + " in " + where}
}

// checkSandbox lets a confined program try to read what is hidden from it: that it
// cannot is the only proof of a sandbox that counts.
func checkSandbox(ctx context.Context, scratch string, agents []agent.Spec) []finding {
	const name = "sandbox"
	self, err := os.Executable()
	if err != nil {
		return []finding{{name, broke, err.Error()}}
	}
	hidden, work := filepath.Join(scratch, "hidden"), filepath.Join(scratch, "work")
	secret := filepath.Join(hidden, "secret")
	err = errors.Join(os.MkdirAll(hidden, 0o700), os.MkdirAll(work, 0o700), os.WriteFile(secret, []byte("x"), 0o600))
	if err != nil {
		return []finding{{name, broke, err.Error()}}
	}
	runner := command.New(command.Options{Self: self, Logger: quiet(), Hide: []string{hidden}})
	res, err := runner.Check(ctx, work, "cat "+secret, nil, lookTime)
	switch {
	case err != nil:
		return []finding{{name, broke, "A program cannot be started: " + err.Error()}}
	case res.OK:
		all := []finding{{name, odd, "Agents run without a sandbox here. Install bubblewrap and allow user namespaces, or use a kernel with Landlock."}}
		for _, a := range agents {
			if a.Kind == agent.Command && a.Sandbox == agent.SandboxRequired {
				all = append(all, finding{"agent " + a.Name, broke, "It has sandbox: required, and nothing confines a program here: its runs fail with sandbox_missing."})
			}
		}
		return all
	}
	kind, missing, err := runner.Machine(ctx)
	if err != nil {
		return []finding{{name, broke, err.Error()}}
	}
	all := []finding{{name, fine, "agents' programs are confined by " + kind}}
	for _, gap := range missing {
		all = append(all, finding{name, odd, gap})
	}
	return all
}

// checkWritable finds the agents and hooks whose folders would show what is hidden in them,
// which are not started here, by their places in the configuration.
func checkWritable(ctx context.Context, cfg *config.Config) []finding {
	self, err := os.Executable()
	if err != nil {
		return nil // checkSandbox says it
	}
	runner := command.New(command.Options{Self: self, Logger: quiet(), Hide: hiddenBy(cfg), Secrets: func() []string { return cfg.SecretFiles }})
	var all []finding
	look := func(name string, spec agent.Spec, where ...any) {
		if len(spec.Writable) == 0 {
			return
		}
		if why, err := runner.Exposes(ctx, spec); err == nil && why != "" {
			all = append(all, finding{name, broke, cfg.Place(why, append(where, "writable")...)})
		}
	}
	for _, a := range cfg.Engine.Agents.All() {
		look("agent "+a.Name, a, "agents", a.Name)
	}
	for i, h := range cfg.LLM.Hooks {
		look("hook "+h.Name, agent.Spec{Name: h.Name, Sandbox: agent.SandboxAuto, Env: h.Env, Writable: h.Writable}, "hooks", i)
	}
	return all
}

// limited says how well an agent's limits hold here.
func limited(a agent.Spec) []finding {
	var all []finding
	if text := a.Limits.String(); text != "" {
		all = append(all, finding{"agent " + a.Name, fine, "each run may use " + text})
	}
	for _, sentence := range a.Caveats() {
		all = append(all, finding{"agent " + a.Name, fine, sentence})
	}
	if a.Network == agent.NetworkOff && !command.CanCloseNetwork() {
		all = append(all, finding{"agent " + a.Name, broke, "network: off cannot be had on this kind of processor: its runs fail with sandbox_missing."})
	}
	return all
}

// checkFolder says when somebody's uncommitted work would make a landing wait.
func checkFolder(ctx context.Context, name string, at checkout) (finding, bool) {
	dirty, err := at.mirror.InTheWay(ctx, at.head.Branch)
	switch {
	case err != nil:
		return finding{"repository " + name, odd, err.Error()}, true
	case dirty == nil:
		return finding{}, false
	}
	return finding{"repository " + name, odd, fmt.Sprintf("%s has changes that nobody committed (%s), so a landing there waits. Commit, stash or move them.",
		dirty.Folder, console.Brief(strings.Join(dirty.Files, ", "), 120))}, true
}

// checkRemote reads the card of an agent that works elsewhere.
func checkRemote(ctx context.Context, a agent.Spec) finding {
	name := "agent " + a.Name
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	card, err := remote.New(remote.Options{}).Look(ctx, a)
	if f, ok := errors.AsType[*agent.Failure](err); ok {
		return finding{name, broke, f.Message}
	}
	if err != nil {
		return finding{name, broke, "It is not reached: " + err.Error() + ". See its url, its token, and whether it runs."}
	}
	text := "It is " + card.Name + " " + card.Version + " at " + a.URL
	if !card.Streaming {
		text += "; it does not stream, so it is asked every few seconds"
	}
	return finding{name, fine, text + "."}
}
