// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Values as MIME bundles, and the helpers cells show rich output with.
 *
 *   $$.html(text), $$.svg, $$.png, $$.jpeg, $$.json, $$.text, $$.markdown, $$.latex, $$.mime({...})
 *       give the result of the cell;
 *   $$.display(id).html(text) ... and display(value) show something at once.
 *
 * An object may say itself how it looks: _toMime, _toHtml, _toSvg, _toPng, _toJpeg, _toText, or a
 * method under Symbol.for('Jupyter.display').
 */

const { inspect } = require('node:util');
const { define } = require('./modules.js');

const MIME = {
  text: 'text/plain',
  html: 'text/html',
  markdown: 'text/markdown',
  latex: 'text/latex',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpeg: 'image/jpeg',
  pdf: 'application/pdf',
  json: 'application/json',
  javascript: 'application/javascript',
};
const METHODS = { _toText: 'text', _toHtml: 'html', _toSvg: 'svg', _toPng: 'png', _toJpeg: 'jpeg' };
const JUPYTER = Symbol.for('Jupyter.display');

function base64(value) {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  }
  return value;
}

/* Cleans a bundle for the wire: bytes as base64, text as text, nothing undefined. */
function clean(bundle) {
  const out = {};
  for (const [type, value] of Object.entries(bundle)) {
    if (value === undefined || value === null) continue;
    const isJson = /[/+]json$/.test(type) || type.startsWith('e2b/');
    out[type] = isJson || value instanceof Uint8Array ? base64(value) : String(value);
  }
  return out;
}

function plainText(value) {
  try {
    return inspect(value);
  } catch (error) {
    return `[${typeof value} that cannot be shown: ${error?.message ?? error}]`;
  }
}

async function ownBundle(value) {
  if (typeof value[JUPYTER] === 'function') return value[JUPYTER]();
  if (typeof value._toMime === 'function') return value._toMime();
  const bundle = {};
  for (const [method, kind] of Object.entries(METHODS)) {
    if (typeof value[method] === 'function') bundle[MIME[kind]] = await value[method]();
  }
  return bundle;
}

/* Only looks for the methods; a plain value needs no await. */
function hasOwnBundle(value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  try {
    return [JUPYTER, '_toMime', ...Object.keys(METHODS)].some((name) => typeof value[name] === 'function');
  } catch {
    return false;
  }
}

async function richBundle(value) {
  const bundle = clean(await ownBundle(value));
  return 'text/plain' in bundle ? bundle : { 'text/plain': plainText(value), ...bundle };
}

function helpers(show) {
  const all = { mime: (bundle) => show(clean(bundle)) };
  for (const [kind, type] of Object.entries(MIME)) all[kind] = (value) => show(clean({ [type]: value }));
  return all;
}

function installDisplay(wire, setResult) {
  const show = (data) => wire.event({ ev: 'display', main: false, data });
  const display = async (value) =>
    show(hasOwnBundle(value) ? await richBundle(value) : { 'text/plain': plainText(value) });
  define('$$', { ...helpers(setResult), display: () => helpers(show) });
  define('display', display);
}

module.exports = { installDisplay, hasOwnBundle, richBundle, plainText };
