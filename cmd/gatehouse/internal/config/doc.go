// Package config turns gatehouse.yaml and the environment into plain values, and
// every mistake into "file:line:column: what, what to do". It only reads: nothing is
// created, opened or connected to.
//
// file.go has the shape of the file, parse.go reads it, check.go judges it and
// config.go has what the program starts with.
package config
