# `make` lists what there is. `make test` needs nothing but Go and this folder: it installs the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
# The packages that lint, tests and benchmarks look at, as in: make lint PKGS=./orchestrator/patch/...
PKGS ?= ./...
# How long each fuzz test runs, and how often each benchmark.
FUZZTIME ?= 60s
COUNT ?= 1
# How many kills a campaign has, and its seed; empty is drawn.
KILLS ?= 50
SEED ?=
# How many events the figures of history are taken with.
EVENTS ?= 1000000

ROOMS := $(wildcard cmd web views handlers approval orchestrator migrations static)
HOUSE := ./cmd/gatehouse/internal/house

# Tests run with the race detector, but for SQLite itself: C that a program made Go of, with its library of C and its memory,
# which is not Go's; the detector sees nothing there and takes three quarters of the time. Its driver and all other code are
# watched. So are servers on SQLite that tests start; what else they start, hundreds of times, is the same without it, and so
# are packages in which nothing happens at the same time as something else. Where that is, the suite reads off the sources.
RACE := -race $(foreach c,sqlite/lib libc memory,-gcflags=modernc.org/$(c)=-race=false)

# Tests that make test leaves alone are checked like the rest.
TAGS := codingagents,kills

# run,TITLE,COMMAND names a step and says how long it took. Make cuts a command at a comma of its own: put it in a variable.
run = $(if $(3),$(error the command of "$(1)" has a comma))@printf '\n== %s\n' "$(1)"; TIMEFORMAT='   %0lR'; time { $(2); }

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: test
test: ## everything: install what is missing, check, run all tests on both databases and in a browser
	@$(MAKE) need $(BEFORE) beside; printf 'make test took %d min %d s.\n' $$((SECONDS / 60)) $$((SECONDS % 60))

.PHONY: test-full
test-full: ## the same with every story on both databases, also where the database decides nothing
	@GATEHOUSE_TEST_SQUARE=1 $(MAKE) test

# Checks that write or look at sources come before the tests, the long ones beside them: tests wait half of the time. The
# rules of the house are tests, so that the suite has them. What a check says comes in one piece, when it ends.
BEFORE := check-format check-generated check-modules
BESIDE := check-vet check-static

.PHONY: beside
beside:
	@said=$$(mktemp); echo; echo 'go vet and staticcheck run beside the tests.'; set -m; \
	{ $(MAKE) $(BESIDE) >"$$said" 2>&1 && good=yes || good=no; cat "$$said"; [ $$good = yes ]; } & checks=$$!; \
	set +m; trap 'rm -f "$$said"; kill -- -$$checks 2>/dev/null || true' EXIT; \
	failed=; $(MAKE) suite || failed=' tests'; wait $$checks || failed="$$failed checks"; \
	[ -z "$$failed" ] || { echo "make test failed:$$failed"; exit 1; }

.PHONY: coverage
coverage: ## which test shows which mechanism of the systems that Gatehouse unites
	@$(GO) test -count=1 -v -run TestEveryMechanismIsShown $(HOUSE) | sed -n 's/^ *coverage_test.go:[0-9]*: //p'

.PHONY: need
need: ## install PostgreSQL, Chromium, git and a C compiler where they are missing
	@.ci/need

.PHONY: build
build: ## the program, as ./gatehouse
	@$(GO) build -trimpath -ldflags="-s -w" -o gatehouse ./cmd/gatehouse

.PHONY: run-demo
run-demo: ## the demo: a team, a real repository and the dashboard, with nothing to set up
	@$(GO) run ./cmd/gatehouse demo

.PHONY: generate
generate: ## Go code from the .templ pages, the lexers of the diffs, and the licences of what is linked
	@$(GO) tool templ generate -log-level warn
	@$(GO) generate ./views/internal/lexers ./cmd/gatehouse

.PHONY: fmt
fmt: ## format Go and templ files in place
	@$(GO) tool templ fmt -log-level warn $(wildcard views)
	@$(SOURCES) | xargs -r gofmt -w

.PHONY: lint
lint: $(BEFORE) $(BESIDE) check-rules ## every check that is no test

# Fixtures are left out: some are badly formed on purpose.
SOURCES = find $(ROOMS) -name '*.go' -not -name '*_templ.go' -not -path '*/testdata/*'

.PHONY: check-format
check-format:
	$(call run,gofmt,bad=$$($(SOURCES) | xargs -r gofmt -l); \
		[ -z "$$bad" ] || { printf 'not formatted; run make fmt:\n%s\n' "$$bad"; exit 1; })

# Compares checksums instead of asking git, so that it also holds for files that are not committed yet.
GENERATED = find $(ROOMS) \( -name '*_templ.go' -o -name lexers.zip -o -name NOTICE \) -exec cksum {} + | LC_ALL=C sort -k3

.PHONY: check-generated
check-generated:
	$(call run,generated code,before=$$($(GENERATED)); $(MAKE) generate; after=$$($(GENERATED)); \
		[ "$$before" = "$$after" ] || { echo 'generated code was out of date and is now up to date; commit it:'; \
		diff <(echo "$$before") <(echo "$$after"); exit 1; })

.PHONY: check-modules
check-modules:
	$(call run,modules,$(GO) mod tidy -diff && $(GO) mod verify)

# Vet and staticcheck read the compiled libraries. With the tests' flags they are the ones that the tests link, which
# saves compiling all of them twice on a fresh machine.
.PHONY: check-vet
check-vet:
	$(call run,go vet,$(GO) vet $(RACE) -tags $(TAGS) $(PKGS))

.PHONY: check-static
check-static:
	$(call run,staticcheck,tool=$$($(GO) tool -n staticcheck); GOFLAGS="$(RACE)" "$$tool" -tags $(TAGS) $(PKGS))

.PHONY: check-rules
check-rules:
	$(call run,rules of the house,$(GO) test $(RACE) -count=1 $(HOUSE))

.PHONY: suite
suite: ## all tests, none skipped (PKGS=… for some); GATEHOUSE_SHOTS=/a/folder keeps the screenshots
	$(call run,tests,$(GO) run $(HOUSE)/suite $(RACE) -count=1 -vet=off -timeout=30m $(PKGS))

# The SDKs take two minutes of processor time to compile, which no other target waits for.
.PHONY: judge
judge: ## the services' own SDKs judge our clients of models and the tests' fake services (no part of make test)
	@cd orchestrator/agent/llm/modeltest/testdata/judge && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: shots
shots: ## the four pictures of the README, taken of a running demo
	@GATEHOUSE_SHOTS="$(CURDIR)/static/shots" $(GO) test -count=1 -run '^TestThePicturesOfTheReadme$$' ./cmd/gatehouse/internal/browser

.PHONY: coding-agents
coding-agents: need ## the real Claude Code, Codex and opencode as coders, installed with npm, against a fake model (no part of make test)
	@programs=$$(.ci/coding-agents); GATEHOUSE_CODING_AGENTS="$$programs" \
		$(GO) test $(RACE) -count=1 -vet=off -tags codingagents -timeout=20m -v -run '^TestACodingAgent' ./cmd/gatehouse ./orchestrator/agent/command

.PHONY: kill
kill: need ## 1,000 calls decided at once, and kill -9 at random of two nodes under load, KILLS=50 times; SEED= repeats one (no part of make test)
	@GATEHOUSE_KILLS=$(KILLS) GATEHOUSE_KILL_SEED=$(SEED) \
		$(GO) test -count=1 -vet=off -tags kills -timeout=120m -v -run '^(TestACampaignOfKills|TestAThousandCalls)$$' ./cmd/gatehouse

.PHONY: fuzz
fuzz: ## the patch parser against made-up patches, for FUZZTIME=60s
	@$(GO) test -run '^$$' -fuzz '^FuzzParsePatch$$' -fuzztime $(FUZZTIME) ./orchestrator/patch

.PHONY: bench
bench: need ## benchmarks, with durable commits (COUNT=5 for figures worth comparing)
	@$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKGS)

.PHONY: bench-history
bench-history: need ## pages of history beside their queries, with EVENTS=1000000 of seeded events (GATEHOUSE_TEST_SEEDS=FOLDER keeps them)
	@GATEHOUSE_TEST_EVENTS=$(EVENTS) $(GO) test -count=1 -timeout 3h -v -run TestHistoryFigures ./web

.PHONY: bench-live
bench-live: ## 2,000 and 5,000 readers of event streams, beside the bare libraries Centrifuge and Mercure
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(GO) test -c -o "$$dir/house" ./web; \
		(cd web/testdata/rivals && $(GO) build -o "$$dir/rivals" .); "$$dir/rivals" "$$dir/house"
