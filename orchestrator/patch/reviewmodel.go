package patch

// Review is what people see of a patch: computed from two trees, values only.
type Review struct {
	Files    []File    `json:"files"` // by path
	Added    int       `json:"added"`
	Removed  int       `json:"removed"`
	Warnings []Warning `json:"warnings"` // by code's importance, then path; one per code and path
	Notes    []Note    `json:"notes"`
}

// Warning makes a request careful: people look at it before they may say yes.
type Warning struct {
	Code string `json:"code"`
	Path string `json:"path"` // raw; "" when it is about the whole patch
	Text string `json:"text"` // a plain sentence
}

// Note is worth knowing and does not make a request careful.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Status is what happened to a file.
type Status string

// The statuses of a file.
const (
	Added       Status = "added"
	Modified    Status = "modified"
	Deleted     Status = "deleted"
	Renamed     Status = "renamed"
	Copied      Status = "copied"
	ModeChanged Status = "mode" // the mode and nothing else
	TypeChanged Status = "type" // a file became a link, or a link a file
)

// File is one changed file of a review.
type File struct {
	Path       string `json:"path"`
	OldPath    string `json:"old_path"` // differs from Path for renames and copies, else ""
	Status     Status `json:"status"`
	Added      int    `json:"added"`
	Removed    int    `json:"removed"`
	Binary     bool   `json:"binary"`
	OldMode    string `json:"old_mode"` // six digits; "" when absent
	NewMode    string `json:"new_mode"`
	OldSize    int64  `json:"old_size"` // bytes
	NewSize    int64  `json:"new_size"`
	OldBlob    string `json:"old_blob"` // full id; "" when absent
	NewBlob    string `json:"new_blob"`
	Similarity int    `json:"similarity"` // percent, for renames and copies
	Bytes      int64  `json:"bytes"`      // of its added and removed lines, with line feeds; 0 in reviews from before this was measured
	Generated  bool   `json:"generated"`  // also vendored and lock files: pages start them closed
	Reason     string `json:"reason"`     // why Generated: what .gitattributes of the base marks it as, "generated", "vendored", "lock file" or "minified"
	// CopyOf is a file of the base that has exactly the content of this Added one, else "".
	CopyOf string `json:"copy_of,omitempty"`
	// WholeAdded and WholeRemoved count the lines of a renamed or copied file without looking
	// for where it comes from: see Whole.
	WholeAdded   int `json:"whole_added,omitempty"`
	WholeRemoved int `json:"whole_removed,omitempty"`
	// Of a file that was moved or copied, whole or in part: whether a person has approved this
	// very content at this path before. Both are false for other files, and for old requests.
	Unseen   bool `json:"unseen,omitempty"`
	SeenHere bool `json:"seen_here,omitempty"`
}

// Hunk is a run of changed lines with its surroundings.
type Hunk struct {
	OldStart, OldLines int // 1-based; start 0 when the side is empty
	NewStart, NewLines int
	Section            string // what git shows after @@
	Lines              []Line
}

// Line is one line of a hunk.
type Line struct {
	Kind      byte   // '+', '-' or ' '
	Old, New  int    // line numbers; 0 on the side where the line is not
	Text      string // without the line feed, raw bytes
	NoNewline bool   // the file ends here without a line feed
	Spans     []Span // what changed within the line; nil when the line changed as a whole
}

// Span is a range of bytes in a line's Text.
type Span struct{ Start, End int }

// Piece is a part of a text for people.
type Piece struct {
	Text string // what to show: the text itself, or ⟦U+202E⟧ for a risky rune
	Risk string // "" for plain text, else bidi, invisible, control_chars or lookalike
}
