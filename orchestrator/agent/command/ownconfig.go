package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/orchestrator/agent"
)

// configFolder is the variable that leads programs to the folder of their user's settings.
const configFolder = "XDG_CONFIG_HOME"

// ownConfig are the programs that take rights from settings below XDG_CONFIG_HOME, by name, with
// the files that they read there. A call that people allowed could write them, and so allow the
// next run everything: each run has a copy of its own, which ends with it.
var ownConfig = map[string][]string{"opencode": {"opencode.json", "opencode.jsonc", "config.json"}}

// choosesModel are the settings of opencode that say which model answers and where: what the
// copy keeps of a program that asks first. The rest may allow calls, or run something.
var choosesModel = []string{"$schema", "model", "small_model", "provider", "enabled_providers", "disabled_providers", "username", "autoupdate", "share"}

// giveConfig leads a program to settings of this run alone. A folder that the agent names under
// `env` stays.
func giveConfig(ws *workspace, env *environment, spec agent.Spec) error {
	if len(spec.Command) == 0 {
		return nil
	}
	name := filepath.Base(spec.Command[0])
	if ownConfig[name] == nil || spec.Env[configFolder] != "" {
		return nil
	}
	from := env.get(configFolder)
	if from == "" {
		from = filepath.Join(env.get("HOME"), ".config")
	}
	root := filepath.Join(ws.scratch, "config")
	if err := os.RemoveAll(root); err != nil { // of an attempt in the same folder
		return fmt.Errorf("clear a run's settings: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
		return fmt.Errorf("make a run's settings: %w", err)
	}
	for _, file := range ownConfig[name] {
		text, err := os.ReadFile(filepath.Join(from, name, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && spec.Protocol == agent.ACP {
			text, err = onlyModel(text)
		}
		if err != nil {
			return agent.Fail(agent.CodeStart, "%s was not started: its settings %s cannot be read (%v). Write them as JSON without comments, or name a file of JSON with OPENCODE_CONFIG under `env`.",
				spec.Name, filepath.Join(from, name, file), err)
		}
		if err := os.WriteFile(filepath.Join(root, name, file), text, 0o600); err != nil {
			return fmt.Errorf("copy a run's settings: %w", err)
		}
	}
	env.set(configFolder, root)
	return nil
}

// onlyModel is what settings say of models, without what they allow.
func onlyModel(text []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	kept := map[string]json.RawMessage{}
	for _, key := range choosesModel {
		if value, ok := all[key]; ok {
			kept[key] = value
		}
	}
	return json.Marshal(kept)
}
