# `make demo` shows tranca at work, `make test` runs the whole suite. Both do
# all set-up themselves. `make help` lists the rest.

GO ?= go
GOARCH ?= $(shell $(GO) env GOARCH)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# One set of flags for everything, so that all commands share one build cache
# and what is tested is what is shipped.
export CGO_ENABLED = 0
export GOFLAGS = -trimpath -buildvcs=false
export LDFLAGS = -s -w -X tranca/internal/cli.Version=$(VERSION)

GUEST = internal/guest/image/bin/tranca-guest-$(GOARCH)
PROBE = hostile/attempt/image/bin/tranca-probe-$(GOARCH)
SENTRY = internal/backend/gvisor/image/bin/tranca-sentry-$(GOARCH)

.PHONY: build weakened guest probe sentry demo test test-weakened test-hostile test-vm engines engines-stop setup-engines lint race bench fuzz churn churn-all soak dist clean help setup setup-test

build: guest probe sentry ## build bin/tranca, one static file
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/tranca ./cmd/tranca

weakened: guest probe sentry ## bin/tranca-weakened: for tests of the hostile suite, guarantees can be taken away
	$(GO) build -tags tranca_weaken -ldflags '$(LDFLAGS)' -o bin/tranca-weakened ./cmd/tranca

# The guest agent is embedded into tranca, so it comes first, and alone: one of
# another architecture would be embedded too.
guest:
	@mkdir -p $(dir $(GUEST))
	@find $(dir $(GUEST)) -name 'tranca-guest-*' ! -name $(notdir $(GUEST)) -delete
	GOARCH=$(GOARCH) $(GO) build -ldflags '-s -w' -o $(GUEST) ./cmd/tranca-guest

# The program that runs hostile programs is embedded in the same way.
probe:
	@mkdir -p $(dir $(PROBE))
	@find $(dir $(PROBE)) -name 'tranca-probe-*' ! -name $(notdir $(PROBE)) -delete
	GOOS=linux GOARCH=$(GOARCH) $(GO) build -ldflags '-s -w' -o $(PROBE) ./cmd/tranca-probe

# gVisor is a program of its own: linking it would cost every start of tranca.
# It is embedded, too, in small, with its digest. bin/tranca-sentry is the same
# program, as a runtime for container engines; it is tried as one in tests.
sentry:
	@mkdir -p .cache/sentry $(dir $(SENTRY))
	@find $(dir $(SENTRY)) -name 'tranca-sentry-*' ! -name '$(notdir $(SENTRY)).*' -delete
	GOOS=linux GOARCH=$(GOARCH) $(GO) build -ldflags '-s -w' -o .cache/sentry/$(notdir $(SENTRY)) ./cmd/tranca-sentry
	@scripts/embed-sentry.sh .cache/sentry/$(notdir $(SENTRY)) $(SENTRY)

setup: ## install the Debian packages that the demo needs (as root)
	scripts/setup.sh

setup-test: ## install those that tests and benchmarks need, too (as root)
	scripts/setup.sh --test

demo: setup build ## a few real runs, with captions
	scripts/demo.sh

test: setup-test ## the whole suite: as root it runs three times
	scripts/test.sh

test-vm: setup-test build ## all that needs another kernel or systemd, in a VM (an hour)
	mkdir -p .cache/bin && go build -o .cache/bin/testrun ./scripts/testrun
	.cache/bin/testrun build -o .cache/testbin ./...
	scripts/test-vm.sh

test-weakened: setup-test ## the suite, and a build in which each guarantee is taken away in turn
	TRANCA_TEST_WEAKENED=1 scripts/test.sh

test-hostile: setup-engines build ## every hostile program against every backend, compared with what is expected
	scripts/hostile.sh

engines: setup-engines build ## a Docker Engine and two Podmans for tests, until engines-stop (as root)
	scripts/engines.sh start
	scripts/engines.sh env

engines-stop:
	scripts/engines.sh stop

setup-engines:
	scripts/setup.sh --engines

lint: ## golangci-lint with the linters of .golangci.yml
	scripts/lint.sh

race: guest probe ## the suite under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

bench: setup-test build ## side by side with bare python, bubblewrap, runsc do and docker run
	GO='$(GO)' scripts/bench.sh $(BENCHFLAGS)

fuzz: guest probe ## every fuzzer for FUZZTIME (60s)
	scripts/fuzz.sh $(or $(FUZZTIME),60s)

churn: setup build ## 1,000 sandboxes, kills at every stage, nothing may remain
	$(GO) run ./bench/cmd/churn $(CHURNFLAGS)

churn-all: engines ## the same on each rung, with the container engine killed, too (as root)
	eval "$$(scripts/engines.sh env)" && scripts/churn.sh 1000 10

soak: setup build ## random clients of a server for 10 minutes, kills of all kinds, nothing may remain
	$(GO) run ./bench/cmd/soak $(SOAKFLAGS)

dist: ## dist/: static binaries, SHA256SUMS, SBOM
	VERSION='$(VERSION)' scripts/dist.sh

clean: ## remove what was built
	rm -rf bin dist .cache internal/guest/image/bin/tranca-guest-* hostile/attempt/image/bin/tranca-probe-* internal/backend/gvisor/image/bin/tranca-sentry-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
