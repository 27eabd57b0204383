package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// Place is where a message goes: a chat, and in a group with topics one of them. It is
// what a card's Address says.
type Place struct {
	Chat   int64 // negative for groups and channels
	Thread int   // 0 for no topic
}

// ParsePlace reads what String writes: "-100123", or "-100123:7" for topic 7.
func ParsePlace(s string) (Place, error) {
	chat, thread, topic := strings.Cut(s, ":")
	var p Place
	var err error
	if p.Chat, err = strconv.ParseInt(chat, 10, 64); err != nil || p.Chat == 0 {
		return Place{}, notPlace(s)
	}
	if topic {
		if p.Thread, err = strconv.Atoi(thread); err != nil || p.Thread < 1 {
			return Place{}, notPlace(s)
		}
	}
	return p, nil
}

func notPlace(s string) error {
	return fmt.Errorf("%q is no place in Telegram: write the chat's number, as in -100123, or with a topic -100123:7", s)
}

// String is the place as ParsePlace reads it.
func (p Place) String() string {
	chat := strconv.FormatInt(p.Chat, 10)
	if p.Thread == 0 {
		return chat
	}
	return chat + ":" + strconv.Itoa(p.Thread)
}

// params names the place in a call.
func (p Place) params() tgbotapi.Params {
	params := tgbotapi.Params{}
	params.AddNonZero64("chat_id", p.Chat)
	params.AddNonZero("message_thread_id", p.Thread)
	return params
}

// Button is one under a message: Data comes back when it is pressed, URL is opened. It
// has one of the two.
type Button struct {
	Text string
	Data string // 1 to 64 bytes
	URL  string
}

// Message is what is sent. Its text is shown as it is: what is bold or code is said by
// Entities and never by markup inside of the text, so no text can break out of its place.
// Links have no previews.
type Message struct {
	Text        string                   // 1 to 4,096 UTF-16 units
	Entities    []tgbotapi.MessageEntity // offsets and lengths in UTF-16 units
	Rows        [][]Button
	ForceReply  bool   // opens the reply field, for those whom Entities mention if they mention anybody
	Placeholder string // in the reply field, at most 64 characters
	ReplyTo     int    // sent all the same when that message is gone
	Silent      bool
}

// params is everything but the place. Editing, a message without Rows loses its keyboard.
func (m Message) params(into tgbotapi.Params, edit bool) error {
	into["text"] = m.Text
	into["link_preview_options"] = `{"is_disabled":true}`
	if len(m.Entities) > 0 {
		if err := into.AddInterface("entities", m.Entities); err != nil {
			return err
		}
	}
	if !edit {
		into.AddBool("disable_notification", m.Silent)
		replyTo(into, m.ReplyTo)
	}
	switch {
	case len(m.Rows) > 0 || edit:
		return into.AddInterface("reply_markup", tgbotapi.InlineKeyboardMarkup{InlineKeyboard: keyboard(m.Rows)})
	case m.ForceReply:
		return into.AddInterface("reply_markup", tgbotapi.ForceReply{ForceReply: true, InputFieldPlaceholder: m.Placeholder, Selective: m.mentions()})
	default:
		return nil
	}
}

func keyboard(rows [][]Button) [][]tgbotapi.InlineKeyboardButton {
	keys := make([][]tgbotapi.InlineKeyboardButton, len(rows))
	for i, row := range rows {
		for _, b := range row {
			if b.URL != "" {
				keys[i] = append(keys[i], tgbotapi.NewInlineKeyboardButtonURL(b.Text, b.URL))
			} else {
				keys[i] = append(keys[i], tgbotapi.NewInlineKeyboardButtonData(b.Text, b.Data))
			}
		}
	}
	return keys
}

// replyTo makes a message an answer to another one of the same chat.
func replyTo(params tgbotapi.Params, id int) {
	if id != 0 {
		params["reply_parameters"] = fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, id)
	}
}

func (m Message) mentions() bool {
	return slices.ContainsFunc(m.Entities, func(e tgbotapi.MessageEntity) bool {
		return e.Type == "text_mention" || e.Type == "mention"
	})
}
