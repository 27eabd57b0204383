package event

// AtStart is how a configuration is taken by a start, which is nobody's word that it shall
// count; see Taken.
const AtStart = "start"

// Configured is one setting in force. No secret is in its value.
type Configured struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Sealed says that the value is a digest of what is written; events do not tell it.
	Sealed bool `json:"sealed,omitempty"`
	// Rule says that it is about who may do what and who must say yes; events name these first.
	Rule bool `json:"-"`
}

// ConfiguredChange is one setting that differs; nothing stands for what is not set.
type ConfiguredChange struct {
	Key string `json:"key"`
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// Taken is who or which process took a configuration.
type Taken struct {
	Actor string // a person, or system
	How   string // AtStart, SIGHUP or reload
	Node  string
	File  string // "" when there is none
}
