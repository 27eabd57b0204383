package command

import "context"

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
