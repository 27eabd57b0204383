// Package house holds the rules of the house: its tests read the whole module and fail where a room imports what it
// may not, a program is started outside its room, a package says nothing about itself, or the root has a folder that
// nobody planned. The rules stand in rules_test.go as one table; imports_test.go applies them, and shows for each that
// it still catches what it forbids.
//
// The program in suite runs every test of the module for `make test`.
//
// May import: the standard library; suite also orchestrator/store/pgtest, for the server that all tests share.
package house
