package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gatehouse/approval/sqlstore"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
)

// nobody says what of groups, and of what asks them, names nobody who can approve. Who there
// is stands in the database: where it cannot be read, that is what it says.
func nobody(ctx context.Context, cfg *config.Config) []string {
	if len(cfg.Groups) == 0 && !cfg.NeedsSeveral() {
		return nil
	}
	users, err := everybody(ctx, cfg)
	switch {
	case len(cfg.Groups) == 0 && (err != nil || len(users) == 0): // no file names anybody; the database has its own line
		return nil
	case err != nil:
		return []string{"Whether groups name people is not looked at: " + err.Error()}
	case len(users) == 0:
		return []string{"Groups name people, and there is nobody yet. Make the first one: gatehouse user add NAME --role admin --role approver"}
	}
	return cfg.Nobody(users)
}

// everybody reads who there is, and makes nothing.
func everybody(ctx context.Context, cfg *config.Config) ([]people.User, error) {
	if missing := cfg.Lacks("database"); missing != "" {
		return nil, fmt.Errorf("${%s} is missing here, and with it the database. Run it where the server's secrets are", missing)
	}
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the database %s is not there yet. Run it again once there are users", file)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := sqlstore.Open(ctx, cfg.Database, store.Options{Node: "doctor", Logger: quiet()})
	if err != nil {
		return nil, err
	}
	users, err := s.Users(ctx)
	return users, errors.Join(err, s.Close())
}
