// Package console is what every command of the program is given and how it speaks to people: its streams and flags, the
// order of arguments, exit codes, and texts that are safe for a terminal.
//
// May import: web/client, and leaves that have words.
package console
