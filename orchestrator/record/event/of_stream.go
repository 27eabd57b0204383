package event

import "fmt"

// What streams show and no log has.
const (
	MessageDelta Type = "message.delta"
	Gap          Type = "gap"
)

// MessageDeltaData is the data of MessageDelta; see Part.
type MessageDeltaData struct {
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	Offset int    `json:"offset"`
}

func (MessageDeltaData) kind() Type { return MessageDelta }
func (d MessageDeltaData) sentence(Event, Words) string {
	return first(oneOf(d.Text), Prefixed("calls ", d.Tool), "writes")
}

// GapData is the data of Gap: the events that a reader has missed.
type GapData struct {
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Message string `json:"message"`
}

func (GapData) kind() Type { return Gap }
func (d GapData) sentence(Event, Words) string {
	return first(d.Message, fmt.Sprintf("events %d–%d could not be replayed", d.From, d.To))
}
