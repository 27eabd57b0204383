// Package pgtest gives tests a real PostgreSQL that nobody has to set up.
//
// [DSN] hands each test an empty database of its own. The databases live on one throw-away server: the one that
// GATEHOUSE_TEST_POSTGRES names (`make test` starts it once for all packages), else one that the test binary starts
// at the first call. [NewServer] starts a server for one test alone, which that test may stop and start again.
//
// A server never outlives the process that started it, not even after kill -9: a small shell stands between the two,
// reads a pipe whose other end only that process holds, and stops the server and removes its folder when the pipe
// closes. It keeps its data in memory where there is room, and a durable one always on the disk.
//
// Where PostgreSQL is not installed a test is skipped, and fails when GATEHOUSE_TEST_ALL is 1.
//
// May import: the standard library and lib/pq. Only tests, storetest and the program behind `make test` import it.
package pgtest
