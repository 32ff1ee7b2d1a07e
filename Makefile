# The two commands of the README are `make demo` and `make test`.
GO     ?= go
BIN    := bin
STATE  ?=
flags  := $(if $(STATE),--state $(STATE))

# Nothing here needs C: binaries run anywhere, and what is compiled for them
# serves the tests, too. The race detector alone does.
export CGO_ENABLED ?= 0
race: export CGO_ENABLED = 1

# Paths of this checkout are in nothing that is compiled: what another checkout has compiled, or
# has tested with the same result, counts here.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Slow matrices, such as every model with every client, run as a sample of their
# rows, which the seed draws: the commit's hash. METALAB_FULL=1 runs every row.
METALAB_SEED ?= $(shell git rev-parse HEAD 2>/dev/null)
export METALAB_SEED

DOCKER ?= docker
IMAGE  ?= metalab

.PHONY: build release image interop demo test race bench fuzz mutants features lint generate kills plain check clean

# Only the linker is told anything, so that tests use what was compiled here:
# Kubernetes takes minutes, and must not be compiled twice.
build:
	@GO='$(GO)' cmd/build.sh $(BIN)

# Archives for the platforms, their checksums and the image, all with the version.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
release:
	@GO='$(GO)' DOCKER='$(DOCKER)' IMAGE='$(IMAGE)' cmd/release.sh '$(VERSION)' dist

# One image with the three of them, from scratch.
image: build
	$(DOCKER) build -q -t $(IMAGE) -t $(IMAGE):devel -f cmd/Dockerfile $(BIN)

# The read-only checks of a BMC against other emulators and this image, in containers.
interop: image
	$(GO) run ./scenarios/conformance/peers -image $(IMAGE)

# Builds, runs the lab, ends with a provisioned server and the lab up.
demo: build
	$(BIN)/labctl demo $(flags)

# Fast packages side by side, then the slow ones; what failed runs once more; then the slowest
# (scenarios/suite). go test says nothing of the tests that a package skips: what is missing,
# and what is skipped for it, is said first, and last in short.
test: export METALAB_SHARE ?= 3
test:
	@$(GO) run ./scenarios/prerequisites/missing
	@echo "$(if $(METALAB_FULL),every scenario and every row of the slow matrices,a sample of the scenarios and of the slow matrices: METALAB_SEED=$(METALAB_SEED))"
	$(GO) vet ./...
	$(GO) run ./scenarios/suite
	@$(GO) run ./scenarios/prerequisites/missing -short

# All packages that do not link the embedded Kubernetes API; CHANGED=1: of these the changed ones.
CHANGED ?=
race: export METALAB_SHARE ?= 3
race:
	$(GO) run ./scenarios/suite -race $(if $(CHANGED),-changed)

features:
	$(GO) test ./features/... -v

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Every fuzz target for a moment: what it found before stays a test.
FUZZTIME ?= 20s
fuzz:
	@for p in $$($(GO) list ./...); do \
	  for t in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz'); do \
	    echo "$$p $$t"; $(GO) test -run '^$$' -fuzz "^$$t$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$p || exit 1; \
	  done; done

# Changes the product in COUNT places, one at a time, and tells which changes no
# test sees. What keeps this machine safe is changed only where the fence is
# complete. FAMILY is a group of packages (scenarios/mutants/families.go), AT one
# file or line of it, as FILE or FILE:LINE.
FAMILY ?=
SEED   ?= $(METALAB_SEED)
COUNT  ?= 40
AT     ?=
mutants:
	.ci/fence $(GO) run ./scenarios/mutants -family '$(FAMILY)' -seed '$(SEED)' -count '$(COUNT)' -at '$(AT)'

# Versions of what is no dependency of the product; the first run compiles them.
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.0
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.47.0
lint:
	$(GO) run $(GOLANGCI) run
	@dead=$$($(GO) run $(DEADCODE) -test ./...) && { [ -z "$$dead" ] || { echo "$$dead"; exit 1; }; }

generate:
	$(GO) generate ./...

# `make test` kills the controllers of a live lab in a few lives, this in all.
kills:
	METALAB_KILLED_RUNS=200 $(GO) test -count 1 -timeout 60m -run KilledControllers -v ./lab

# The API's tests and the reconcile tests without kube.Config.FastPaths: `make test`
# runs them with it.
plain:
	METALAB_KUBE_PLAIN=1 $(GO) test -timeout 40m ./controller/kube/... ./lab/...

# All that there is to test, stage by stage; STAGES="kills race" runs these again.
STAGES ?=
check:
	.ci/check $(STAGES)

clean:
	rm -rf $(BIN) dist
