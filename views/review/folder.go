package review

import (
	"slices"

	"gatehouse/views/diff"
)

// folder is the files of one directory, for the list.
type folder struct {
	Name  string // "" is the root
	Files []diff.DiffFile
}

// folders groups files that follow each other by their directory.
func folders(files []diff.DiffFile) []folder {
	var all []folder
	for _, f := range files {
		if n := len(all); n == 0 || all[n-1].Name != f.Dir() {
			all = append(all, folder{Name: f.Dir()})
		}
		last := &all[len(all)-1]
		last.Files = append(last.Files, f)
	}
	return all
}

// warned reports whether any file of the folder has a warning.
func (d folder) warned() bool {
	return slices.ContainsFunc(d.Files, func(f diff.DiffFile) bool { return len(f.Warnings) > 0 })
}
