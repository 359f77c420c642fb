# Two commands do everything on a fresh Debian 12 or newer, as root:
#   make serve    installs what is missing, builds, makes the default templates once, starts the server
#   make test     installs what is missing and runs all tests
BUILD ?= build
MESON_FLAGS ?=

.PHONY: build serve test unit check asan fuzz soak bench templates deps clean uninstall-state install

build: deps-build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) $(MESON_FLAGS) >/dev/null
	@ninja -C $(BUILD) --quiet
	@scripts/stage-runtime . $(BUILD)/src/agent/cloche-agent $(BUILD)/runtime $(BUILD)/.staged
	@ln -sf src/cli/cloche $(BUILD)/cloche

deps-%:
	@scripts/deps $*

templates: deps-template
	@templates/build

serve: build deps-run templates
	@exec $(BUILD)/cloche serve $(SERVE_FLAGS)

test: build deps-run deps-test templates
	@scripts/test-all

unit: build
	@meson test -C $(BUILD) --print-errorlogs

check: deps-check
	@scripts/check

asan: deps-build
	@test -f build-asan/build.ninja || meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@$(MAKE) --no-print-directory build BUILD=build-asan

fuzz: deps-check
	@scripts/fuzz

soak: build deps-run deps-test templates
	@scripts/soak

bench: build deps-run deps-test templates
	@scripts/bench

install: build
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

clean:
	rm -rf build build-*

# Removes everything the daemon ever made on this machine: boxes, cgroups, mounts, data, caches.
uninstall-state: build
	@scripts/uninstall-state
