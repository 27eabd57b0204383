// Package each turns lists into lists, for whoever shows or publishes what others keep.
package each

// Of is what becomes of each item; nil where there is none.
func Of[T, R any](items []T, become func(T) R) []R {
	if len(items) == 0 {
		return nil
	}
	all := make([]R, len(items))
	for i, item := range items {
		all[i] = become(item)
	}
	return all
}

// String is an item as plain text: a name that has a type of its own.
func String[S ~string](s S) string { return string(s) }
