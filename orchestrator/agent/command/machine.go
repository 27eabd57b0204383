package command

import (
	"context"
	"runtime"

	"gatehouse/orchestrator/agent"
)

// Machine says what confines programs on this machine, and each thing that it does not
// forbid though a person may take it for forbidden.
func (r *Runner) Machine(ctx context.Context) (kind string, missing []string, err error) {
	kind, err = r.bestSandbox(ctx)
	if err != nil {
		return "", nil, err
	}
	return kind, gaps(kind, landlockVersion()), nil
}

// gaps are what a kind of sandbox leaves open with a version of Landlock, as sentences.
func gaps(kind string, landlock int) []string {
	if kind == SandboxNone {
		return []string{"Programs run without a sandbox: they read and write what the server may. Install bubblewrap and allow user namespaces, or use Linux 6.2 or later with Landlock."}
	}
	var all []string
	if kind == SandboxLandlock && landlock < landlockScopes {
		all = append(all, "A program can end processes of other runs and the server. Install bubblewrap, or use Linux 6.12 or later.")
	}
	if landlock < landlockScopes {
		all = append(all, "A program can connect to sockets without a path (abstract Unix sockets). Use Linux 6.12 or later.")
	}
	if kind == SandboxLandlock && landlock < landlockSockets {
		all = append(all, "A program can connect to sockets with a path that file rights leave open, hidden ones too, such as that of Docker. Install bubblewrap, or give the agent network: off.")
	}
	return all
}

// HowLimited says how well an agent's limits hold on this machine, as sentences; none where
// it has no limits.
func HowLimited(spec agent.Spec) []string {
	var all []string
	if l := spec.Limits; l.Memory > 0 || l.Processes > 0 {
		all = append(all, "Memory and processes are looked at ten times a second and the whole run is ended: a burst between two looks can pass them.")
	}
	if spec.Limits.Files > 0 {
		all = append(all, "Files are counted in the run's own folders, about once a second; caches and other writable folders are not counted.")
	}
	if n := spec.Limits.CPU; n > 0 && n >= runtime.NumCPU() {
		all = append(all, "This machine has no more processors than limits.cpu allows.")
	} else if n > 0 {
		all = append(all, "A program is kept to its processors unless it undoes that itself.")
	}
	if spec.Network == agent.NetworkOff {
		all = append(all, "With network: off the program makes no socket at all, so gatehouse delegate and the API are out of its reach, too; jsonl hands on over standard output.")
		if !canForbidSockets() {
			all = append(all, "On this kind of processor network: off cannot be had: its runs fail with sandbox_missing.")
		}
	}
	return all
}
