# SPDX-License-Identifier: Apache-2.0
# recipe.sh - what a recipe says, and where its result lives in a store.
#
# Sourced by `build` and `check`. A template is a JSON file that names its
# layers, top first; a layer is a folder:
#   packages   Debian packages, one or more a line, # comments
#   files/     copied over the root, owned by root
#   wheels     (optional) Python wheels by name, left out where they can't be had
#   wheels.in  (optional) Python libraries by name; wheels.lock has them and what
#              they need with versions and hashes (`lock` writes it)
#   npm        (optional) npm packages with their versions
#   borrow     (optional) paths of the project that `finish` finds below /tmp/borrowed
#   finish     run inside the root at the end
#   suite      (bottom layer only) the Debian release
# A layer's key is the hash of everything in its folder, of what it borrows and of
# the layer below it, so the key of an unchanged recipe never moves and a change
# moves all keys above it.
# shellcheck shell=bash

recipes=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Raise when the way layers are made changes what is in them.
readonly recipe_format=2

# What the caller leaves out of all layers: nothing, or what comes from `registries` (wheels.lock, npm).
recipe_without=

# Names of all templates that there is a recipe for.
recipe_all() {
	local file
	for file in "$recipes"/*.json; do
		basename "$file" .json
	done
}

# Names of the default templates: those that are not only made on request.
recipe_templates() {
	jq -r 'select(.onRequest | not) | .name' "$recipes"/*.json
}

# Names of a template's layers, bottom first.
recipe_layers() {
	jq -r '.layers | reverse | .[]' "$recipes/$1.json"
}

# The words of a list file without its comments.
recipe_words() {
	[[ -e $1 ]] || return 0
	sed 's/#.*//' "$1" | tr -s ' \t\n' '\n' | sed '/^$/d'
}

# recipe_key LAYER BELOW_KEY
recipe_key() {
	{
		printf 'format %s\narchitecture %s\nbelow %s\n' "$recipe_format" "$(dpkg --print-architecture)" "$2"
		if [[ $recipe_without && (-e $recipes/$1/wheels.lock || -e $recipes/$1/npm) ]]; then
			echo "without $recipe_without"
		fi
		cd "$recipes/$1" || exit
		find . -type f -perm -100 -print | LC_ALL=C sort | sed 's/^/program /'
		find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
		cd "$recipes/.." || exit
		recipe_words "$recipes/$1/borrow" | while read -r path; do
			find "$path" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
		done
	} | sha256sum | cut -d ' ' -f 1
}

# Keys of a template's layers, bottom first.
recipe_keys() {
	local layer key=
	for layer in $(recipe_layers "$1"); do
		key=$(recipe_key "$layer" "$key")
		echo "$key"
	done
}

# recipe_layer_key TEMPLATE LAYER: the key of one of its layers.
recipe_layer_key() {
	paste -d ' ' <(recipe_layers "$1") <(recipe_keys "$1") | sed -n "s/^$2 //p"
}
