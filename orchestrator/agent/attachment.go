package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// File is a file as a person attaches it to a task.
type File struct {
	Name      string
	MediaType string // "" finds it by the name and the content
	Data      []byte
}

// Attachment is a file that came with a task, as it is stored: its content is in the store
// under SHA256. The task owns it, and every delegation of the task is given it.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"` // bytes
	SHA256    string `json:"sha256"`
	// Path is where a running agent finds it; never stored.
	Path string `json:"path,omitempty"`
}

// The limits of attachments.
const (
	MaxAttachments    = 8       // of one task
	MaxAttachment     = 5 << 20 // bytes of one
	MaxAttachmentSum  = 10 << 20
	MaxAttachmentName = 150 // bytes
)

// The codes of attachments that are not taken.
const (
	CodeAttachment      = "bad_attachment" // its name is none that can be kept, or its content is gone
	CodeAttachmentLimit = "too_large"      // too many, or too large
)

// Attach checks the files of one task and says how each is stored, in their order. Names are
// brought into one spelling; what a file system, a program or a reader may take for something
// else is refused.
func Attach(files []File) ([]Attachment, *Failure) {
	if len(files) > MaxAttachments {
		return nil, Fail(CodeAttachmentLimit, "There are %d files; a task takes %d. Leave some out, or pack them into one archive.", len(files), MaxAttachments)
	}
	var all []Attachment
	seen, sum := map[string]string{}, 0
	for _, f := range files {
		name := plainSpaces(norm.NFC.String(f.Name))
		if f := checkFileName(name); f != nil {
			return nil, f
		}
		if first, twice := seen[foldFile(name)]; twice {
			return nil, Fail(CodeAttachment, "%q and %q are one name on many systems. Rename one of the files.", first, name)
		}
		seen[foldFile(name)] = name
		if len(f.Data) > MaxAttachment {
			return nil, Fail(CodeAttachmentLimit, "The file %q has %s; %s is the limit of one. Make it smaller.", name, Size(int64(len(f.Data))), Size(MaxAttachment))
		}
		if sum += len(f.Data); sum > MaxAttachmentSum {
			return nil, Fail(CodeAttachmentLimit, "The files have more than %s together, which is the limit of a task. Leave some out, or make them smaller.", Size(MaxAttachmentSum))
		}
		digest := sha256.Sum256(f.Data)
		all = append(all, Attachment{Name: name, MediaType: Artifact{Name: name, MediaType: f.MediaType}.TypeOf(f.Data),
			Size: int64(len(f.Data)), SHA256: hex.EncodeToString(digest[:])})
	}
	return all, nil
}

// plainSpaces makes every kind of space a plain one: some systems write others into names.
func plainSpaces(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, name)
}

// foldFile is a name as file systems that know no case see it.
func foldFile(name string) string { return strings.ToLower(norm.NFKC.String(name)) }

// devices are names that Windows takes for something else than a file, whatever their ending.
var devices = []string{"con", "prn", "aux", "nul", "com", "lpt", "conin$", "conout$"}

// checkFileName says why a file cannot have this name; nil is fine.
func checkFileName(name string) *Failure {
	stem, _, _ := strings.Cut(foldFile(name), ".")
	why := ""
	switch {
	case name == "":
		return Fail(CodeAttachment, "A file has no name. Give each one a name.")
	case len(name) > MaxAttachmentName:
		return Fail(CodeAttachment, "The file name %.60q… has %d bytes; %d is the limit. Use a shorter one.", name, len(name), MaxAttachmentName)
	case !utf8.ValidString(name):
		why = "is no text"
	case strings.ContainsAny(foldFile(name), `/\:*?"<>|`):
		why = `has one of / \ : * ? " < > |`
	case strings.ContainsFunc(name, unseen):
		why = "has characters that cannot be seen"
	case strings.ContainsRune(".-~ ", []rune(name)[0]):
		why = "begins with a dot, a dash, a tilde or a space"
	case strings.ContainsRune(". ", rune(name[len(name)-1])):
		why = "ends with a dot or a space"
	case slices.Contains(devices, strings.TrimRight(stem, "0123456789 ")):
		why = "is a device on some systems"
	default:
		return nil
	}
	return Fail(CodeAttachment, "The file name %q %s. Rename the file.", name, why)
}

// unseen reports whether a character leaves no mark of its own where a name is shown.
func unseen(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// AttachmentsTold lists files for whoever works on the task: where says where the
// reader finds them. "" without files.
func AttachmentsTold(all []Attachment, where string) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Files that came with the task\n\n%s\n", where)
	for _, a := range all {
		kind, _, _ := strings.Cut(a.MediaType, ";")
		fmt.Fprintf(&b, "- %s (%s, %s)\n", a.Name, kind, Size(a.Size))
	}
	return strings.TrimRight(b.String(), "\n")
}
