package patch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/spelling"
)

// Tables of names that mean something to machines. All are compared after folding
// (spelling.Fold), since some file systems do.

var ciFiles = nameRules{
	names: set("jenkinsfile", ".gitlab-ci.yml", ".gitlab-ci.yaml", "azure-pipelines.yml", "azure-pipelines.yaml", ".travis.yml", ".drone.yml",
		".drone.star", ".woodpecker.yml", ".woodpecker.yaml", "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml",
		".appveyor.yml", "appveyor.yml", ".cirrus.yml", "buildspec.yml", ".goreleaser.yml", ".goreleaser.yaml", ".gitea-ci.yml", "codefresh.yml"),
	folders: []string{".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".gitlab/ci", ".circleci",
		".buildkite", ".woodpecker", ".ci", ".teamcity", ".azure-pipelines", ".drone", ".tekton", ".semaphore"},
}

var agentFiles = nameRules{
	names: set("agents.md", "agent.md", "claude.md", "claude.local.md", "gemini.md", "skill.md", "codex.md", "copilot-instructions.md", ".cursorrules", ".windsurfrules",
		".clinerules", ".roorules", ".mcp.json", "mcp.json", ".aider.conf.yml", ".aiderignore", "opencode.json", "opencode.jsonc", "crush.json",
		".crush.json", "gatehouse.yaml", "gatehouse.yml", ".goosehints",
		"agents.override.md", "crush.md", "qwen.md", "warp.md", ".rules"),
	folders: []string{".claude", ".codex", ".cursor", ".gemini", ".opencode", ".crush", ".aider", ".windsurf", ".roo", ".continue", ".kiro",
		".junie", ".qwen", ".factory", ".augment", ".trae", ".agents", ".cline", ".clinerules", ".amazonq", ".github/instructions", ".github/prompts", ".github/agents", ".github/chatmodes", ".gatehouse"},
}

var autorunFiles = nameRules{
	names: set(".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnpmfile.cjs", "lefthook.yml", "lefthook.yaml", ".pre-commit-config.yaml", ".lintstagedrc",
		"conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "build.rs", "binding.gyp", ".bazelrc", ".gdbinit", ".lldbinit",
		".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".dir-locals.el", "mise.toml", ".mise.toml", ".tool-versions", ".autoenv", ".env.vault",
		".gitpod.yml", ".replit", ".bashrc", ".profile", ".zshrc", ".bash_profile", ".pythonstartup", ".devcontainer.json", "flake.nix", "shell.nix"),
	folders:  []string{".vscode", ".idea/runconfigurations", ".devcontainer", ".husky", ".githooks", ".hooks", ".cargo", ".mvn", ".config/mise", ".zed", ".fleet"},
	suffixes: []string{".pth", ".code-workspace"},
}

var lockFiles = set("go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
	"Cargo.lock", "Gemfile.lock", "poetry.lock", "Pipfile.lock", "uv.lock", "pdm.lock", "composer.lock", "flake.lock", "mix.lock", "pubspec.lock",
	"Podfile.lock", "Package.resolved", "packages.lock.json", "gradle.lockfile", ".terraform.lock.hcl", "go.work.sum", "conan.lock", "pixi.lock", "buf.lock")

// nameRules match base names at any depth, folders at any depth, and endings.
type nameRules struct {
	names    map[string]bool
	folders  []string
	suffixes []string
}

func (n nameRules) match(name string) bool {
	name = spelling.Fold(name)
	if n.names[path.Base(name)] || inFolder(name, n.folders...) {
		return true
	}
	for _, f := range n.folders { // a file or link in place of the folder
		if name == f || strings.HasSuffix(name, "/"+f) {
			return true
		}
	}
	return slices.ContainsFunc(n.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// pathWarnings are the warnings that a name alone gives.
func pathWarnings(name string) []string {
	var codes []string
	if ciFiles.match(name) {
		codes = append(codes, "ci_file")
	}
	if agentFiles.match(name) {
		codes = append(codes, "agent_config")
	}
	if autorunFiles.match(name) {
		codes = append(codes, "autorun")
	}
	switch base := path.Base(spelling.Fold(name)); {
	case base == ".gitattributes":
		codes = append(codes, "git_attributes")
	case base == ".gitmodules":
		codes = append(codes, "submodule")
	case strings.HasPrefix(base, ".env"):
		codes = append(codes, envWarnings(base)...)
	}
	if lockFiles[path.Base(name)] {
		codes = append(codes, "lock_file")
	}
	return codes
}

// envWarnings: many programs load .env and its like by themselves and do what stands in
// it (NODE_OPTIONS, LD_PRELOAD), which is autorun; and it is where passwords are kept, so
// it is secret_like as well, but for files that by their name are examples.
func envWarnings(base string) []string {
	codes := []string{"autorun"}
	if base == ".env" || strings.HasPrefix(base, ".env.") && !strings.HasSuffix(base, ".example") && !strings.HasSuffix(base, ".sample") && !strings.HasSuffix(base, ".template") {
		codes = append(codes, "secret_like")
	}
	return codes
}

// packageScripts reports whether a package.json makes a package manager run something else
// than before, or is too long, or too odd, to tell.
func (r *Mirror) packageScripts(ctx context.Context, f *File) (bool, error) {
	if spelling.Fold(path.Base(f.Path)) != "package.json" || f.Status == Deleted || f.NewMode == modeLink {
		return false, nil
	}
	before, err := r.packageRuns(ctx, f.OldBlob)
	if err != nil {
		return false, err
	}
	after, err := r.packageRuns(ctx, f.NewBlob)
	return !maps.Equal(before, after), err
}

// packageRuns is what of a package.json decides what runs. Keys are those that a package
// manager reads, letter by letter: encoding/json would take "Scripts" for "scripts" in a struct.
func (r *Mirror) packageRuns(ctx context.Context, id string) (map[string]string, error) {
	if id == "" {
		return nil, nil
	}
	content, err := r.Blob(ctx, id, largeBytes)
	if errors.Is(err, ErrCut) {
		return map[string]string{"": id}, nil // any change counts
	}
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(content, &all) != nil {
		return map[string]string{"": id}, nil // unreadable: any change counts
	}
	runs := map[string]string{}
	for _, key := range []string{"scripts", "gypfile"} {
		if text := string(all[key]); text != "" {
			runs[key] = text
		}
	}
	for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"} {
		var list map[string]string
		if text := all[key]; len(text) > 0 && json.Unmarshal(text, &list) != nil {
			runs[key] = string(text)
		}
		for name, version := range list {
			if fromElsewhere(version) {
				runs[key+" "+name] = version
			}
		}
	}
	return runs, nil
}

// fromElsewhere reports whether a dependency is no version of the registry's package of that name, but
// an address, a folder or another package, whose own scripts run when it is installed.
func fromElsewhere(version string) bool {
	return strings.ContainsAny(version, ":/") && !strings.HasPrefix(version, "workspace:") && !strings.HasPrefix(version, "catalog:")
}

// gitName reports whether some file system would take a path component for
// ".git": in another case, with NTFS's short name, streams, trailing dots and
// blanks, or with code points that HFS+ ignores. The rules are those of git's
// verify_path (path.c, utf8.c), asked on every machine, since a patch made on
// one is checked out on others.
func gitName(name string) bool { return isNTFSDotGit(name) || isHFSDotGit(name) }

// isNTFSDotGit also covers plain case folding. A backslash and a colon end the
// name there, as on Windows.
func isNTFSDotGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		part, _, _ = strings.Cut(part, ":")
		part = strings.ToLower(strings.TrimRight(part, ". "))
		if part == ".git" || part == "git~1" || part == ".git~1" {
			return true
		}
	}
	return false
}

// isHFSDotGit drops what HFS+ ignores, then compares without regard to case.
func isHFSDotGit(name string) bool {
	var b strings.Builder
	for i := 0; i < len(name); {
		c, n := utf8.DecodeRuneInString(name[i:])
		if !ignoredByHFS(c) {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return strings.EqualFold(b.String(), ".git")
}

func ignoredByHFS(c rune) bool {
	switch {
	case c >= 0x200c && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x206a && c <= 0x206f, c == 0xfeff:
		return true
	}
	return false
}

// checkPath refuses a path that no tree may hold.
func checkPath(path string) *Refusal {
	switch {
	case path == "":
		return refuse(CodePathOutside, "", "A path is empty.")
	case strings.HasPrefix(path, "/"):
		return refuse(CodePathOutside, path, "%s is an absolute path. Use paths inside the repository.", Shown(path))
	case strings.ContainsRune(path, 0):
		return refuse(CodePathOutside, path, "%s holds a NUL byte.", Shown(path))
	case len(path) > 4096:
		return refuse(CodePathOutside, path[:200], "A path is %d bytes long; 4,096 is the limit.", len(path))
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return refuse(CodePathOutside, path, "%s leaves the repository or is not in plain form.", Shown(path))
		case gitName(part):
			return refuse(CodeGitInternal, path, "%s would write into git's own folder.", Shown(path))
		case len(part) > 255:
			return refuse(CodePathOutside, path, "%s has a name of %d bytes; 255 is the limit.", Shown(part[:60]), len(part))
		}
	}
	return nil
}

// gitMeta reports whether a name is one of the files that git itself reads from
// a tree, in any disguise; those must be plain files.
func gitMeta(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".gitignore" || name == ".gitattributes" || name == ".gitmodules" || name == ".mailmap"
}
