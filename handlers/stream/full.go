package stream

import (
	"errors"
	"math"
	"syscall"

	"gatehouse/orchestrator"

	"github.com/labstack/echo/v4"
)

// comeBack is after how many seconds a client that found no place may try again.
const comeBack = "10"

var errFull = orchestrator.Errorf(orchestrator.CodeUnavailable, "As many streams are open as this server has room for. Try again in "+comeBack+" seconds, close streams that nobody reads, or raise the server's limit of open files.")

// share is how many streams this process has room for.
func share() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur/2 > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(1, int(limit.Cur/2))
}

// turnAway says when to come again where that is known.
func turnAway(c echo.Context, err error) error {
	if errors.Is(err, errFull) {
		c.Response().Header().Set(echo.HeaderRetryAfter, comeBack)
	}
	return err
}
