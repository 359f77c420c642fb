# SPDX-License-Identifier: Apache-2.0
# Two commands do everything on a fresh Debian 12 or newer, as root:
#   make serve    installs what is missing, builds, makes the default templates once, starts the server
#   make test     installs what is missing and runs all tests
BUILD ?= build
MESON_FLAGS ?=
# For example --debian-only, where no Python and no npm registry is reached.
TEMPLATE_FLAGS ?=
PREFIX ?= /usr/local

# Of `make deb`: bookworm or trixie (default: this machine's), amd64 or arm64.
SUITE ?=
ARCH ?=

.PHONY: build criu stores serve test unit check asan fuzz soak bench sdk sdk-docs templates deps clean uninstall-state \
	install uninstall deb image release coverage ci

# `make test BUILD=build-asan` and the like use the build under sanitizers.
ifeq ($(BUILD),build-asan)
build:
	@$(MAKE) --no-print-directory BUILD=build asan
else
build: deps-build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) $(MESON_FLAGS) >/dev/null
	@ninja -C $(BUILD) --quiet
	@scripts/stage-runtime . $(BUILD)/src/agent/cloche-agent $(BUILD)/runtime $(BUILD)/.staged
	@scripts/console $(CURDIR)/$(BUILD)/console
	@ln -sf src/cli/cloche $(BUILD)/cloche
endif

deps-%:
	@scripts/deps $*

templates: deps-template
	@templates/build $(TEMPLATE_FLAGS)

# Made once; without it boxes are paused by freezing, which it says.
criu:
	@scripts/criu || true

# criu and the templates are made side by side: each keeps one core busy for minutes, once. Both ask the machine's apt,
# so what that has to install is there first.
stores: deps-run deps-template
	@scripts/criu --where >/dev/null || scripts/deps criu || true
	@$(MAKE) --no-print-directory --jobs=2 criu templates

serve: build stores
	@exec $(BUILD)/cloche serve $(SERVE_FLAGS)

test: build deps-check deps-test stores
	@BUILD=$(BUILD) scripts/test-all

unit: build
	@meson test -C $(BUILD) --print-errorlogs

check: build deps-check
	@scripts/check

# The daemon under ASan and UBSan; `make test BUILD=build-asan` then tests with this build. The agent in its boxes is the
# static one; the suite `agent-asan` runs boxes with the sanitized one, whose runtime is in build-asan/runtime-agent.
asan: build
	@test -f build-asan/build.ninja || meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=undefined >/dev/null
	@ninja -C build-asan --quiet
	@scripts/stage-runtime . build/src/agent/cloche-agent build-asan/runtime build-asan/.staged
	@scripts/stage-runtime . build/src/agent/cloche-agent build-asan/runtime-agent build-asan/.staged-agent
	@cp build-asan/src/agent/cloche-agent build-asan/runtime-agent/usr/lib/cloche/agent
	@ln -sfn ../build/console build-asan/console
	@ln -sf src/cli/cloche build-asan/cloche

# A source tarball, its SPDX document and checksums, in $(BUILD)/release; the same bytes from any clone of the commit.
release:
	@scripts/release $(BUILD)/release

# Which lines the tests reach, in build-coverage/report; writes the number into the README.
coverage: build deps-check deps-coverage deps-test stores
	@scripts/coverage

# With clang, and with both supported releases of Debian in roots of their own.
ci: deps-build deps-check deps-run
	@scripts/ci --all

fuzz: deps-check
	@scripts/fuzz

soak: build deps-test stores
	@scripts/soak

bench: build deps-test stores
	@scripts/bench

# The SDKs as they are handed out, in $(BUILD)/sdk: libcloche, two wheels, the npm tarball.
sdk: build
	@BUILD=$(BUILD) scripts/sdk

# Their API references, made from the sources, in $(BUILD)/sdk/docs.
sdk-docs: build
	@BUILD=$(BUILD) scripts/sdk docs

# Everything that a server needs, below $(DESTDIR)$(PREFIX); the config file in $(DESTDIR)/etc/cloche.
install: build
	@scripts/install $(BUILD) "$(PREFIX)" "$(DESTDIR)"

uninstall:
	@scripts/install --remove "$(PREFIX)" "$(DESTDIR)"

# Debian packages in $(BUILD)/packages, looked at by lintian (docs/install.md).
deb: deps-package
	@scripts/deb $(if $(SUITE),--suite $(SUITE)) $(if $(ARCH),--arch $(ARCH))

# An OCI image of the packages, in $(BUILD)/image.
image: deps-package
	@scripts/image

clean:
	rm -rf build build-*

# Removes everything the daemon ever made on this machine: boxes, cgroups, mounts, data, caches.
uninstall-state: build
	@scripts/uninstall-state
