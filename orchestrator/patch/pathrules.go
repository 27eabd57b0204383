package patch

import (
	"path"
	"strings"

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
	for _, s := range n.suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
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
