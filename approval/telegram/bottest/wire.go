package bottest

import (
	"encoding/json"
	"strings"
)

// object is a JSON object of the Bot API.
type object map[string]any

func (a Account) json() object {
	o := object{"id": a.ID, "is_bot": a.Bot, "first_name": a.first()}
	if a.Username != "" {
		o["username"] = a.Username
	}
	if a.Bot {
		o["can_join_groups"], o["can_read_all_group_messages"], o["supports_inline_queries"] = true, false, false
	} else {
		o["language_code"] = "en"
	}
	return o
}

// first is never empty, as in Telegram.
func (a Account) first() string {
	if a.Name != "" {
		return a.Name
	}
	return "Somebody"
}

func (c *chat) json() object {
	o := object{"id": c.id, "type": c.kind}
	if c.kind == "private" {
		o["first_name"] = c.title
	} else {
		o["title"] = c.title
	}
	if len(c.topics) > 0 {
		o["is_forum"] = true
	}
	return o
}

// json is a message with the one that it answers. s.mu is held.
func (m *Message) json(s *Server, c *chat) object {
	o := m.bare(c)
	if answered := c.message(m.ReplyTo); answered != nil {
		o["reply_to_message"] = answered.bare(c)
	}
	return o
}

func (m *Message) bare(c *chat) object {
	o := object{"message_id": m.ID, "from": m.From.json(), "chat": c.json(), "date": m.Date.Unix()}
	if m.Thread != 0 {
		o["message_thread_id"], o["is_topic_message"] = m.Thread, true
	}
	if m.Edits > 0 {
		o["edit_date"] = m.Date.Unix()
	}
	text, entities := "text", "entities"
	if m.Document != nil {
		text, entities = "caption", "caption_entities"
		o["document"] = object{"file_id": "BQACAgIAAxkBAAI", "file_unique_id": "AgADBQ", "file_name": m.Document.Name, "file_size": len(m.Document.Data)}
	}
	if m.Text != "" {
		o[text] = m.Text
	}
	if len(m.Entities) > 0 {
		o[entities] = m.Entities
	}
	if len(m.Buttons) > 0 {
		o["reply_markup"] = object{"inline_keyboard": m.Buttons}
	}
	return o
}

// commandsIn marks the command that a text begins with, as Telegram's apps do.
func commandsIn(text string) []Entity {
	if !strings.HasPrefix(text, "/") || len(text) < 2 {
		return nil
	}
	word, _, _ := strings.Cut(text, " ")
	return []Entity{{Type: "bot_command", Length: units(word)}}
}

// replied reads which message is answered, in the present way or in the one before
// version 7.0, and whether to send without when that is gone.
func (p params) replied() (id int, orWithout bool, err error) {
	if raw := p.values["reply_parameters"]; raw != "" {
		var r struct {
			ID      int  `json:"message_id"`
			Without bool `json:"allow_sending_without_reply"`
		}
		if json.Unmarshal([]byte(raw), &r) != nil {
			return 0, false, bad("can't parse reply parameters JSON object")
		}
		return r.ID, r.Without, nil
	}
	n, err := p.number("reply_to_message_id")
	return int(n), p.yes("allow_sending_without_reply"), err
}

// noPreview reads whether links have no previews, in either way.
func (p params) noPreview() bool {
	var o struct {
		Disabled bool `json:"is_disabled"`
	}
	_ = json.Unmarshal([]byte(p.values["link_preview_options"]), &o) // absent is no
	return o.Disabled || p.yes("disable_web_page_preview")
}
