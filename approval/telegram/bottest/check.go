package bottest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of the Bot API.
const (
	longestText     = 4096 // UTF-16 units
	longestCaption  = 1024 // UTF-16 units
	longestAnswer   = 200  // characters
	longestData     = 64   // bytes
	largestDocument = 50 << 20
)

const notModified = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"

// Entity is a part of a text that looks or acts different.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
	User     *struct {
		ID int64 `json:"id"`
	} `json:"user,omitempty"`
}

// Button is one under a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// units is the length of a text as Telegram counts it.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

func checkText(text string) error {
	switch {
	case !utf8.ValidString(text):
		return bad("strings must be encoded in UTF-8")
	case strings.TrimSpace(text) == "":
		return bad("message text is empty")
	case units(text) > longestText:
		return bad("message is too long")
	default:
		return nil
	}
}

// readEntities reads and checks the entities of a text.
func readEntities(raw, text string) ([]Entity, error) {
	if raw == "" {
		return nil, nil
	}
	var entities []Entity
	if err := json.Unmarshal([]byte(raw), &entities); err != nil {
		return nil, bad("can't parse entities JSON object")
	}
	all := utf16.Encode([]rune(text))
	for _, e := range entities {
		end := e.Offset + e.Length
		switch {
		case e.Type == "":
			return nil, bad("can't parse MessageEntity: Field \"type\" must be of type String")
		case e.Offset < 0 || e.Length <= 0 || end > len(all):
			return nil, bad(fmt.Sprintf("entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d", e.Offset, len(all)))
		case splits(all, e.Offset) || splits(all, end):
			return nil, bad(fmt.Sprintf("entity beginning at UTF-16 offset %d begins or ends in a middle of a UTF-16 symbol", e.Offset))
		}
	}
	return entities, nil
}

// splits reports whether a position is inside of a surrogate pair.
func splits(all []uint16, at int) bool {
	return at > 0 && at < len(all) && utf16.IsSurrogate(rune(all[at])) && all[at] >= 0xDC00 && all[at-1] >= 0xD800 && all[at-1] < 0xDC00
}

// markup is a reply_markup.
type markup struct {
	Keyboard    [][]Button `json:"inline_keyboard"`
	ForceReply  bool       `json:"force_reply"`
	Placeholder string     `json:"input_field_placeholder"`
	Selective   bool       `json:"selective"`
}

func readMarkup(raw string) (markup, error) {
	var m markup
	if raw == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return m, bad("can't parse reply keyboard markup JSON object")
	}
	if units(m.Placeholder) > longestData {
		return m, bad("reply keyboard placeholder is too long")
	}
	rows := m.Keyboard[:0:0]
	for _, row := range m.Keyboard {
		for _, b := range row {
			if err := checkButton(b); err != nil {
				return m, err
			}
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	m.Keyboard = rows
	return m, nil
}

func checkButton(b Button) error {
	switch {
	case strings.TrimSpace(b.Text) == "":
		return bad("can't parse inline keyboard button: Field \"text\" must be of type String")
	case b.URL != "":
		return checkURL(b.URL)
	case b.Data == "":
		return bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	case len(b.Data) > longestData:
		return bad("BUTTON_DATA_INVALID")
	default:
		return nil
	}
}

// checkURL refuses what nobody else could open.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "tg" {
		return nil
	}
	host := ""
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		host = strings.TrimSuffix(u.Hostname(), ".")
	}
	ip := net.ParseIP(host)
	if !strings.Contains(host, ".") || (ip != nil && (ip.IsLoopback() || ip.IsUnspecified())) || strings.HasSuffix(host, ".localhost") {
		return bad(fmt.Sprintf("inline keyboard button URL '%s' is invalid: Wrong HTTP URL", address))
	}
	return nil
}

var commandShape = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (s *Server) setCommands(in params) (any, error) {
	var all []struct{ Command, Description string }
	if err := json.Unmarshal([]byte(in.values["commands"]), &all); err != nil {
		return nil, bad("can't parse commands JSON object")
	}
	names := make([]string, len(all))
	for i, c := range all {
		if !commandShape.MatchString(c.Command) {
			return nil, bad("BOT_COMMAND_INVALID")
		}
		if n := units(c.Description); n < 1 || n > 256 {
			return nil, bad("BOT_COMMAND_DESCRIPTION_INVALID")
		}
		names[i] = c.Command
	}
	s.commands = names
	return true, nil
}

// number reads a parameter that is a number; without it, 0.
func (p params) number(name string) (int64, error) {
	raw := p.values[name]
	if raw == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, bad("invalid " + name + " specified")
	}
	return n, nil
}

func (p params) yes(name string) bool {
	return p.values[name] == "true" || p.values[name] == "True" || p.values[name] == "1"
}
