package bottest

import (
	"net/http"
	"reflect"
	"slices"
	"time"
)

// chat is one chat and what it shows.
type chat struct {
	id        int64
	kind      string // private, group, supergroup, channel
	title     string
	topics    []int
	left      bool // the bot was blocked or kicked
	migrated  int64
	messages  []*Message
	lastTaken int // the newest message's number
}

// Document is a file in a message.
type Document struct {
	Name string
	Data []byte
}

// Message is one as its chat shows it now.
type Message struct {
	Chat        int64
	ID          int
	Thread      int
	From        Account
	Date        time.Time
	Text        string // a document's caption, too
	Entities    []Entity
	Buttons     [][]Button
	ForceReply  bool
	Selective   bool
	Placeholder string
	ReplyTo     int
	Silent      bool
	NoPreview   bool
	Document    *Document
	Edits       int
	History     []string // the texts before the one that it shows
}

// find returns the chat that a call is about, if the bot can write there. s.mu is held.
func (s *Server) find(in params) (*chat, error) {
	if in.values["chat_id"] == "" {
		return nil, bad("chat_id is empty")
	}
	id, err := in.number("chat_id")
	if err != nil {
		return nil, bad("chat not found")
	}
	c := s.chats[id]
	switch {
	case c == nil:
		return nil, bad("chat not found")
	case c.migrated != 0:
		return nil, &refusal{code: http.StatusBadRequest, text: "Bad Request: group chat was upgraded to a supergroup chat", migrateTo: c.migrated}
	case c.left && c.kind == "private":
		return nil, &refusal{code: http.StatusForbidden, text: "Forbidden: bot was blocked by the user"}
	case c.left:
		return nil, &refusal{code: http.StatusForbidden, text: "Forbidden: bot was kicked from the " + c.kind + " chat"}
	default:
		return c, nil
	}
}

// add adds a message to a chat. s.mu is held.
func (s *Server) add(c *chat, m Message) *Message {
	c.lastTaken++
	m.Chat, m.ID, m.Date = c.id, c.lastTaken, s.now()
	c.messages = append(c.messages, &m)
	return &m
}

// message returns a chat's message, or nil.
func (c *chat) message(id int) *Message {
	at := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == id })
	if at < 0 {
		return nil
	}
	return c.messages[at]
}

// place reads what sending has in common: the topic and the message that is answered.
func (s *Server) place(c *chat, in params, m *Message) error {
	thread, err := in.number("message_thread_id")
	if err != nil {
		return err
	}
	if thread != 0 && !slices.Contains(c.topics, int(thread)) {
		return bad("message thread not found")
	}
	reply, orWithout, err := in.replied()
	if err != nil {
		return err
	}
	if reply != 0 && c.message(reply) == nil {
		if !orWithout {
			return bad("message to be replied not found")
		}
		reply = 0
	}
	m.From, m.Thread, m.ReplyTo, m.Silent = s.Bot, int(thread), reply, in.yes("disable_notification")
	return nil
}

func (s *Server) sendMessage(in params) (any, error) {
	c, err := s.find(in)
	if err != nil {
		return nil, err
	}
	var m Message
	if err := s.place(c, in, &m); err != nil {
		return nil, err
	}
	if err := readContent(in, &m); err != nil {
		return nil, err
	}
	return s.add(c, m).json(s, c), nil
}

// readContent reads the text, the entities and the markup of a message.
func readContent(in params, m *Message) error {
	m.Text = in.values["text"]
	if in.values["parse_mode"] != "" {
		return bad("this test server knows no parse_mode: send entities")
	}
	if err := checkText(m.Text); err != nil {
		return err
	}
	var err error
	if m.Entities, err = readEntities(in.values["entities"], m.Text); err != nil {
		return err
	}
	mark, err := readMarkup(in.values["reply_markup"])
	m.Buttons, m.ForceReply, m.Selective, m.Placeholder = mark.Keyboard, mark.ForceReply, mark.Selective, mark.Placeholder
	m.NoPreview = in.noPreview()
	return err
}

func (s *Server) sendDocument(in params) (any, error) {
	c, err := s.find(in)
	if err != nil {
		return nil, err
	}
	var m Message
	if err := s.place(c, in, &m); err != nil {
		return nil, err
	}
	switch m.Text = in.values["caption"]; {
	case in.file == nil:
		return nil, bad("there is no document in the request")
	case len(in.file.Data) == 0:
		return nil, bad("file must be non-empty")
	case len(in.file.Data) > largestDocument:
		return nil, &refusal{code: http.StatusRequestEntityTooLarge, text: "Request Entity Too Large"}
	case units(m.Text) > longestCaption:
		return nil, bad("message caption is too long")
	}
	if m.Entities, err = readEntities(in.values["caption_entities"], m.Text); err != nil {
		return nil, err
	}
	m.Document = in.file
	return s.add(c, m).json(s, c), nil
}

// edited finds the message that a call edits.
func (s *Server) edited(in params) (*chat, *Message, error) {
	c, err := s.find(in)
	if err != nil {
		return nil, nil, err
	}
	id, err := in.number("message_id")
	if err != nil {
		return nil, nil, err
	}
	m := c.message(int(id))
	switch {
	case m == nil:
		return nil, nil, bad("message to edit not found")
	case m.From != s.Bot:
		return nil, nil, bad("message can't be edited")
	default:
		return c, m, nil
	}
}

func (s *Server) editText(in params) (any, error) {
	c, m, err := s.edited(in)
	if err != nil {
		return nil, err
	}
	if m.Document != nil {
		return nil, bad("there is no text in the message to edit")
	}
	next := *m
	if err := readContent(in, &next); err != nil {
		return nil, err
	}
	if next.Text == m.Text && slices.EqualFunc(next.Entities, m.Entities, sameEntity) && sameButtons(next.Buttons, m.Buttons) {
		return nil, &refusal{code: http.StatusBadRequest, text: notModified}
	}
	next.Edits++
	next.History = append(slices.Clone(m.History), m.Text)
	*m = next
	return m.json(s, c), nil
}

func (s *Server) editMarkup(in params) (any, error) {
	c, m, err := s.edited(in)
	if err != nil {
		return nil, err
	}
	mark, err := readMarkup(in.values["reply_markup"])
	if err != nil {
		return nil, err
	}
	if sameButtons(mark.Keyboard, m.Buttons) {
		return nil, &refusal{code: http.StatusBadRequest, text: notModified}
	}
	m.Buttons = mark.Keyboard
	m.Edits++
	return m.json(s, c), nil
}

func sameEntity(a, b Entity) bool { return reflect.DeepEqual(a, b) }

func sameButtons(a, b [][]Button) bool {
	return slices.EqualFunc(a, b, slices.Equal[[]Button])
}
