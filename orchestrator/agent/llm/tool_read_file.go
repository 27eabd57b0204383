package llm

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
)

const (
	// maxRead is the largest file that is read, in bytes.
	maxRead = 4 << 20
	// maxLines is how many lines one call shows.
	maxLines = 2000
	// maxShown is how many bytes one call shows.
	maxShown = 48 << 10
)

func (c *conversation) readFile() tool {
	type input struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	return tool{Tool: describe(readFileTool, `"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}`, "path"),
		run: typed(func(_ context.Context, in input) (answer, error) {
			content, err := c.content(in.Path)
			if err != nil {
				return answer{}, err
			}
			if binary(content) {
				return answer{Text: fmt.Sprintf("%s is a binary file of %d bytes; it is not shown.", in.Path, len(content))}, nil
			}
			return lines(in.Path, string(content), in.Offset, in.Limit), nil
		})}
}

// content reads a whole file.
func (c *conversation) content(name string) ([]byte, error) {
	if content, ours, err := c.attachment(name); ours {
		return content, err
	}
	f, err := c.openFiles()
	if err != nil {
		return nil, err
	}
	defer f.root.Close() //nolint:errcheck // nothing was written
	at, failed := f.place(name)
	if failed != nil {
		return nil, failed
	}
	info, failed := f.regular(at)
	if failed != nil {
		return nil, failed
	}
	if info.Size() > maxRead {
		return nil, agent.Fail("too_large", "%s has %d bytes; %d is the limit. Look into it with %s.", name, info.Size(), maxRead, searchTool)
	}
	content, err := f.root.ReadFile(at)
	if err != nil {
		return nil, agent.Fail("not_readable", "%s cannot be read: %v.", name, cause(err))
	}
	return content, nil
}

// lines shows a part of a text and says which.
func lines(name, text string, offset, limit int) answer {
	if text == "" {
		return answer{Text: name + " is empty."}
	}
	all := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	first := max(offset, 1)
	if limit <= 0 || limit > maxLines {
		limit = maxLines
	}
	if first > len(all) {
		return sorry("%s has %d lines; there is no line %d.", name, len(all), first)
	}
	last := min(first-1+limit, len(all))
	size := 0
	for i := first - 1; i < last; i++ {
		if size += len(all[i]); size > maxShown && i > first-1 {
			last = i
		}
	}
	shown := strings.Join(all[first-1:last], "")
	if len(shown) > maxShown {
		shown = strings.ToValidUTF8(shown[:maxShown], "") + "… (the line is cut)"
	}
	if first > 1 || last < len(all) {
		shown += fmt.Sprintf("\n[lines %d to %d of %d of %s]", first, last, len(all), name)
	}
	return answer{Text: shown}
}
