package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// What Spec.Sandbox says.
const (
	SandboxAuto     = "auto"     // the best that the machine has, and none where it has none
	SandboxRequired = "required" // without one the run is not started (CodeNoSandbox)
	SandboxOff      = "off"
)

// What Spec.Network says.
const (
	NetworkOpen = "open"
	NetworkOff  = "off" // no socket at all; what is said over standard input and output stays
)

// Limits are what one run of a program may use, with all that it starts. Zero is no limit.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes held at once
	Processes int   `json:"processes,omitempty"` // at once
	Files     int64 `json:"files,omitempty"`     // bytes written into its checkout and its scratch folder; also the longest file
	CPU       int   `json:"cpu,omitempty"`       // processors that it is kept to
}

// Or returns l with the figures of fallback where l has none.
func (l Limits) Or(fallback Limits) Limits {
	l.Memory = cmp.Or(l.Memory, fallback.Memory)
	l.Processes = cmp.Or(l.Processes, fallback.Processes)
	l.Files = cmp.Or(l.Files, fallback.Files)
	l.CPU = cmp.Or(l.CPU, fallback.CPU)
	return l
}

// String lists the limits for a person, "" when there are none.
func (l Limits) String() string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, Size(l.Memory)+" of memory")
	}
	if l.Processes > 0 {
		parts = append(parts, count(l.Processes, "process", "processes"))
	}
	if l.Files > 0 {
		parts = append(parts, Size(l.Files)+" of files")
	}
	if l.CPU > 0 {
		parts = append(parts, count(l.CPU, "processor", "processors"))
	}
	return strings.Join(parts, ", ")
}

// Confinement is what a run was given and, once it has ended, the most that it used.
type Confinement struct {
	Limits  Limits `json:"limits,omitzero"`
	Network string `json:"network,omitempty"`
	Most    Limits `json:"most,omitzero"` // of what was watched: a burst between two looks is not seen
}

// Size writes bytes as a person does: 2 GB, 1.5 MB, in powers of 1024 as the configuration has them.
func Size(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[i]
}

// Span is a length of time as the configuration has it: 15m, not 15m0s.
func Span(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Caveats say how well what confines the agent holds, as sentences; none where nothing does.
func (s Spec) Caveats() []string {
	var all []string
	if s.Limits.Memory > 0 || s.Limits.Processes > 0 {
		all = append(all, "Memory and processes are looked at ten times a second, and a run over its limit is ended: a burst between two looks passes.")
	}
	if s.Limits.Files > 0 {
		all = append(all, "Files are counted in the run's own folders, about once a second; caches and other writable folders are not counted.")
	}
	if s.Limits.CPU > 0 {
		all = append(all, "A program is kept to its processors unless it undoes that itself.")
	}
	if s.Network == NetworkOff {
		all = append(all, "It makes no socket at all, so gatehouse delegate and the API are out of its reach, too; jsonl hands on over standard output.")
	}
	return all
}
