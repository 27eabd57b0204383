// Package browser has the stories that people play in a real browser, with the demo: the program is started as it is, and
// its pages are read and clicked. There are tests only.
//
// May import: nothing; its tests the rooms that they tell their stories with.
package browser
