package pgtest

import "testing"

func TestParseVersion(t *testing.T) {
	for line, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15,
		"postgres (PostgreSQL) 18beta1":                        18,
		"postgres (PostgreSQL) 9.6.24":                         9,
		"psql: command not found":                              0,
		"":                                                     0,
	} {
		if got := parseVersion(line); got != want {
			t.Errorf("parseVersion(%q) = %d, want %d", line, got, want)
		}
	}
}

func TestASlowStartIsNotAFailedOne(t *testing.T) {
	for log, want := range map[string]bool{
		"FATAL:  the database system is starting up":                       false,
		"FATAL:  could not create any TCP/IP sockets":                      true,
		"initdb: error: directory \"data\" is not empty\npgtest-gave-up\n": true,
	} {
		if got := gaveUp(log); got != want {
			t.Errorf("gaveUp(%q) = %t, want %t", log, got, want)
		}
	}
}
