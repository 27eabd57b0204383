package mcptools

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/textcut"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxTools       = 64       // tools of one server that are taken
	maxName        = 64       // bytes of a whole name: what providers take
	maxDescription = 2000     // characters
	maxSchema      = 16 << 10 // bytes
	maxResult      = 64 << 10 // bytes of one result
)

// describe makes a tool that any provider takes of what a server lists, or reports false.
func describe(server string, t *mcp.Tool) (model.Tool, bool) {
	name := "mcp_" + toolName(server) + "_" + toolName(t.Name)
	if t.Name == "" || len(name) > maxName {
		return model.Tool{}, false
	}
	schema, err := json.Marshal(t.InputSchema)
	var shape map[string]any
	if err != nil || len(schema) > maxSchema || json.Unmarshal(schema, &shape) != nil || shape["type"] != "object" {
		return model.Tool{}, false
	}
	if shape["properties"] == nil {
		shape["properties"] = map[string]any{}
		if schema, err = json.Marshal(shape); err != nil {
			return model.Tool{}, false
		}
	}
	about := strings.TrimSpace(text(t.Description))
	return model.Tool{Name: name, Description: textcut.Characters(fmt.Sprintf("A tool of the server %s. %s", server, about), maxDescription), Schema: schema}, true
}

// toolName is a name in the letters that every provider takes.
func toolName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// render is a result as text. What is no text is named.
func render(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			b.WriteString(text(c.Text))
		case *mcp.ImageContent:
			fmt.Fprintf(&b, "(an image of type %s, %d bytes; it is not shown)", text(c.MIMEType), len(c.Data))
		case *mcp.AudioContent:
			fmt.Fprintf(&b, "(a sound of type %s, %d bytes; it is not played)", text(c.MIMEType), len(c.Data))
		case *mcp.ResourceLink:
			fmt.Fprintf(&b, "(a link to %s)", text(c.URI))
		case *mcp.EmbeddedResource:
			if c.Resource != nil {
				fmt.Fprintf(&b, "%s:\n%s", text(c.Resource.URI), text(c.Resource.Text))
			}
		default:
			b.WriteString("(something that cannot be shown)")
		}
		b.WriteString("\n")
		if b.Len() > maxResult {
			break
		}
	}
	if b.Len() == 0 && res.StructuredContent != nil {
		if whole, err := json.Marshal(res.StructuredContent); err == nil {
			b.Write(whole)
		}
	}
	out := strings.TrimRight(b.String(), "\n")
	if len(out) > maxResult {
		out = strings.ToValidUTF8(out[:maxResult], "") + "\n… (cut)"
	}
	return out
}

// text drops from a server's words what is no text: control characters but line ends and
// tabs, and bytes that are no UTF-8.
func text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
