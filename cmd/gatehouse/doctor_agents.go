package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
)

func checkProgram(a agent.Spec) finding {
	name := "agent " + a.Name
	if len(a.Command) == 0 {
		return finding{name, broke, "It has no command. Write command: [\"PROGRAM\"]."}
	}
	program := a.Command[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return finding{name, fine, program + " comes from the repository"}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return finding{name, broke, program + " is not found. Install it, or name its whole path in the agent's command."}
	}
	return finding{name, fine, path}
}

// checkSandbox lets a confined program try to read what is hidden from it: that it
// cannot is the only proof of a sandbox that counts.
func checkSandbox(ctx context.Context, scratch string) finding {
	const name = "sandbox"
	self, err := os.Executable()
	if err != nil {
		return finding{name, broke, err.Error()}
	}
	hidden, work := filepath.Join(scratch, "hidden"), filepath.Join(scratch, "work")
	secret := filepath.Join(hidden, "secret")
	err = errors.Join(os.MkdirAll(hidden, 0o700), os.MkdirAll(work, 0o700), os.WriteFile(secret, []byte("x"), 0o600))
	if err != nil {
		return finding{name, broke, err.Error()}
	}
	runner := command.New(command.Options{Self: self, Logger: quiet(), Hide: []string{hidden}})
	res, err := runner.Check(ctx, work, "cat "+secret, remote)
	switch {
	case err != nil:
		return finding{name, broke, "A program cannot be started: " + err.Error()}
	case res.OK:
		return finding{name, odd, "Agents run without a sandbox here. Install bubblewrap and allow user namespaces, or use a kernel with Landlock."}
	}
	return finding{name, fine, "agents' programs are confined"}
}
