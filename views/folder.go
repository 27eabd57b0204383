package views

import "slices"

// folder is the files of one directory, for the list.
type folder struct {
	Name  string // "" is the root
	Files []DiffFile
}

// folders groups files that follow each other by their directory.
func folders(files []DiffFile) []folder {
	var all []folder
	for _, f := range files {
		if n := len(all); n == 0 || all[n-1].Name != f.dir() {
			all = append(all, folder{Name: f.dir()})
		}
		last := &all[len(all)-1]
		last.Files = append(last.Files, f)
	}
	return all
}

// warned reports whether any file of the folder has a warning.
func (d folder) warned() bool {
	return slices.ContainsFunc(d.Files, func(f DiffFile) bool { return len(f.Warnings) > 0 })
}
