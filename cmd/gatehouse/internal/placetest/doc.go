// Package placetest is what the tests of the program share: the program itself, started as a process of its own, and what
// outside systems send to it.
//
// A package whose tests start the program calls Main from its TestMain. The suite names programs that it has built; where
// nobody does, Main builds one.
//
// May import: the rooms that its users tell their stories with. Only tests import it.
package placetest
