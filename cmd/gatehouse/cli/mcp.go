package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCPCmd are servers of the Model Context Protocol over standard input and output.
type MCPCmd struct {
	Permission MCPPermissionCmd `cmd:"" help:"Inside a run: a server whose tool approve asks whether a tool may be called, for Claude Code's --permission-prompt-tool."`
}

// MCPPermissionCmd serves one tool, approve, as Claude Code's --permission-prompt-tool calls it.
type MCPPermissionCmd struct{}

// prompted is the input of the tool, as Claude Code 2 sends it. The tool_use_id beside it names
// nothing here: a model writes it, and one that wrote it twice would use one yes twice.
type prompted struct {
	ToolName string          `json:"tool_name"`
	Input    json.RawMessage `json:"input"`
}

// Run serves until standard input ends.
func (*MCPPermissionCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if sh.Token == "" {
		return console.Usage("mcp permission works inside a run, which has a token in GATEHOUSE_TOKEN.")
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "gatehouse", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name: "approve", Description: "Asks whether a tool may be called; people decide where the rules say so.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":true}`),
	}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return prompt(ctx, sh, api, r.Params.Arguments)
	})
	err := server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(sh.In), Writer: written{sh.Out}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// prompt answers one call of the tool. Whatever goes wrong is a no.
func prompt(ctx context.Context, sh *console.Shell, api *client.Client, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	var in prompted
	said := permission{Behavior: "deny", Message: "The call could not be read, so it was not allowed."}
	if err := json.Unmarshal(arguments, &in); err == nil && in.ToolName != "" {
		if said, err = permit(ctx, sh, api, rand.Text(), wire.Action{Tool: in.ToolName, Input: in.Input}); err != nil {
			said = permission{Behavior: "deny", Message: "Nobody could be asked: " + err.Error()}
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}

// written is standard output, which its owner closes.
type written struct{ io.Writer }

func (written) Close() error { return nil }
