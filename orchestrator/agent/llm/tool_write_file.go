package llm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"gatehouse/orchestrator/agent"
)

// maxWrite is the largest file that is written, in bytes.
const maxWrite = 2 << 20

func (c *conversation) writeFile() tool {
	type input struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	return tool{Tool: describe(writeFileTool, `"path":{"type":"string"},"content":{"type":"string"}`, "path", "content"), alone: true, changes: true,
		run: typed(func(_ context.Context, in input) (answer, error) {
			if in.Content == nil {
				return sorry("There is no content. Give the whole file; an empty text empties it."), nil
			}
			if err := c.put(in.Path, *in.Content); err != nil {
				return answer{}, err
			}
			return answer{Text: fmt.Sprintf("Wrote %d bytes to %s.", len(*in.Content), in.Path), Changed: true}, nil
		})}
}

// put writes a file and makes its folders. A file that exists keeps its mode.
func (c *conversation) put(name, content string) error {
	if len(content) > maxWrite {
		return agent.Fail("too_large", "The content has %d bytes; %d is the limit.", len(content), maxWrite)
	}
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	defer f.root.Close() //nolint:errcheck // the file itself was closed
	at, failed := f.place(name)
	if failed != nil {
		return failed
	}
	if at == "." {
		return agent.Fail("is_folder", "A file needs a name.")
	}
	if _, failed := f.regular(at); failed != nil && failed.Code != "not_found" {
		return failed
	}
	if err := f.root.MkdirAll(path.Dir(at), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return agent.Fail("not_writable", "The folder of %s cannot be made: %v.", name, cause(err))
	}
	if err := f.root.WriteFile(at, []byte(content), 0o644); err != nil {
		return agent.Fail("not_writable", "%s cannot be written: %v.", name, cause(err))
	}
	return nil
}
