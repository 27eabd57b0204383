package bottest

import (
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"
)

// Answer is what somebody saw who pressed a button.
type Answer struct {
	Text  string
	Alert bool
}

// AddChat adds a chat that the bot may write to: private, with an account's number, or
// group, supergroup or channel, with a negative one.
func (s *Server) AddChat(id int64, kind, title string) {
	s.set(func() { s.chats[id] = &chat{id: id, kind: kind, title: title} })
}

// AddTopic adds a topic to a chat.
func (s *Server) AddTopic(id int64, thread int) {
	s.set(func() {
		if c := s.chats[id]; c != nil {
			c.topics = append(c.topics, thread)
		}
	})
}

// Block makes the bot unwelcome in a chat, or welcome again.
func (s *Server) Block(id int64, on bool) {
	s.set(func() {
		if c := s.chats[id]; c != nil {
			c.left = on
		}
	})
}

// Migrate makes a group another chat; the old one says so to whoever writes there.
func (s *Server) Migrate(id, to int64) {
	s.set(func() {
		if c := s.chats[id]; c != nil {
			c.migrated = to
			s.chats[to] = &chat{id: to, kind: "supergroup", title: c.title}
		}
	})
}

// Delete deletes a message as people do in a chat's app.
func (s *Server) Delete(id int64, message int) {
	s.set(func() {
		if c := s.chats[id]; c != nil {
			c.messages = slices.DeleteFunc(c.messages, func(m *Message) bool { return m.ID == message })
		}
	})
}

// Press presses a button that a message shows now, named by its whole text. The query
// is what Answers knows it by.
func (s *Server) Press(id int64, message int, button string, from Account) (query string, err error) {
	m, ok := s.Message(id, message)
	if !ok {
		return "", fmt.Errorf("chat %d has no message %d", id, message)
	}
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == button && b.Data != "" {
				return s.PressData(id, message, b.Data, from), nil
			}
		}
	}
	return "", fmt.Errorf("message %d of chat %d has no button %q to press: %v", message, id, button, m.Buttons)
}

// PressData presses a button with these data whether the message has one or not, as an
// app does that has not seen the edit yet, or somebody who makes data up.
func (s *Server) PressData(id int64, message int, data string, from Account) (query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query = fmt.Sprintf("%d%08d", from.ID, len(s.queries)+1)
	s.queries[query] = true
	q := object{"id": query, "from": from.json(), "chat_instance": fmt.Sprint(id * 31), "data": data}
	if c := s.chats[id]; c != nil {
		if m := c.message(message); m != nil {
			q["message"] = m.json(s, c)
		} else { // as Telegram writes what it can no longer show
			q["message"] = object{"message_id": message, "chat": c.json(), "date": 0}
		}
	}
	s.push("callback_query", q)
	return query
}

// Say writes into a chat; replyTo 0 answers no message. It returns the message's number.
func (s *Server) Say(id int64, from Account, text string, replyTo int) int {
	return s.SayIn(id, 0, from, text, replyTo)
}

// SayIn is Say in a topic.
func (s *Server) SayIn(id int64, thread int, from Account, text string, replyTo int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[id]
	if c == nil {
		return 0
	}
	m := s.add(c, Message{From: from, Thread: thread, Text: text, Entities: commandsIn(text), ReplyTo: replyTo})
	s.push("message", m.json(s, c))
	return m.ID
}

// Member changes the bot's standing in a chat to member, administrator, left or kicked,
// and tells the bot.
func (s *Server) Member(id int64, by Account, standing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[id]
	if c == nil {
		return
	}
	before := "member"
	if c.left {
		before = "left"
	}
	c.left = standing == "left" || standing == "kicked"
	s.push("my_chat_member", object{"chat": c.json(), "from": by.json(), "date": s.now().Unix(),
		"old_chat_member": object{"user": s.Bot.json(), "status": before}, "new_chat_member": object{"user": s.Bot.json(), "status": standing}})
}

// Deliver delivers an update of any shape; its number is filled in.
func (s *Server) Deliver(kind string, content map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(kind, content)
}

// DeliverRaw delivers an update as it is written, but for its number, which takes the place
// of the first %d.
func (s *Server) DeliverRaw(format string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := fmt.Appendf(nil, format, s.nextID)
	s.pending = append(s.pending, update{s.nextID, "callback_query", body})
	s.nextID++
	s.poke()
}

// Forget makes every query of a pressed button too old to be answered.
func (s *Server) Forget() {
	s.set(func() {
		for query := range s.queries {
			s.queries[query] = false
		}
	})
}

func (s *Server) answerQuery(in params) (any, error) {
	query, text := in.values["callback_query_id"], in.values["text"]
	switch {
	case !s.queries[query]:
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	case utf8.RuneCountInString(text) > longestAnswer:
		return nil, &refusal{code: http.StatusBadRequest, text: "Bad Request: MESSAGE_TOO_LONG"}
	}
	s.answers[query] = append(s.answers[query], Answer{Text: text, Alert: in.yes("show_alert")})
	return true, nil
}

// Answers returns how a pressed button was answered.
func (s *Server) Answers(query string) []Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers[query])
}

// Messages returns what a chat shows now, oldest first.
func (s *Server) Messages(id int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[id]
	if c == nil {
		return nil
	}
	all := make([]Message, len(c.messages))
	for i, m := range c.messages {
		all[i] = *m
	}
	return all
}

// FromBot returns those of Messages that the bot sent.
func (s *Server) FromBot(id int64) []Message {
	return slices.DeleteFunc(s.Messages(id), func(m Message) bool { return !m.From.Bot })
}

// Last returns a chat's newest message; its ID is 0 when there is none.
func (s *Server) Last(id int64) Message {
	all := s.Messages(id)
	if len(all) == 0 {
		return Message{}
	}
	return all[len(all)-1]
}

// Message returns a message as its chat shows it now.
func (s *Server) Message(id int64, message int) (Message, bool) {
	for _, m := range s.Messages(id) {
		if m.ID == message {
			return m, true
		}
	}
	return Message{}, false
}

// Calls returns the calls of a method so far, refused ones included.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return c.Method != method })
}

// Pending is how many updates the bot has not acknowledged.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Webhook is the address that is set, or "".
func (s *Server) Webhook() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.webhook
}

// Commands are the names of the commands that are offered.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}
