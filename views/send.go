package views

import (
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// SendForm is the form that makes a task.
type SendForm struct {
	Agents       []Choice
	Repositories []Choice // empty: the form has no such field
	Agent        string   // what is filled in
	Text         string
	Repository   string
	OptIn        bool   // agents hand nothing on unless the task says so: the form has a box for it
	Handoffs     bool   // the box is ticked
	Key          string // makes a double click one task
	Error        string // why the last try was refused
	FilesError   string // why its files were, or that they have to be chosen again
}

// Attached is a file that came with a task.
type Attached struct {
	Name string // foreign
	Size int64  // bytes
	Href string // gets it

	Digest string // sha256 of its content
}

// AttachedFiles are the files of a task.
func AttachedFiles(t orchestrator.Task) []Attached { return AttachedTo(t.RootID, t.Attachments) }

// AttachedTo are the files of the task that a delegation is part of.
func AttachedTo(delegation string, files []agent.Attachment) []Attached {
	var all []Attached
	for i, a := range files {
		all = append(all, Attached{Name: a.Name, Size: a.Size, Digest: a.SHA256, Href: AttachmentHref(delegation, i+1)})
	}
	return all
}

// attachLimits says what a form takes.
var attachLimits = fmt.Sprintf("Up to %d files, %s each, %s together", agent.MaxAttachments, agent.Size(agent.MaxAttachment), agent.Size(agent.MaxAttachmentSum))

// Choice is one option of a select.
type Choice struct {
	Value string
	Text  string
	Note  string
}

// Example is a task of the demo that is ready to send.
type Example struct {
	Title      string // what it shows
	Note       string // what will happen
	Agent      string
	Text       string
	Repository string
	Key        string
}
