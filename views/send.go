package views

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
}

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
