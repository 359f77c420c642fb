// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Finds imports, exports and declarations in a cell and writes them as a script of a REPL may
 * hold them.
 *
 * A cell is evaluated as a script, where static imports are not allowed and import() has
 * no referrer. The engine lets a later cell declare a name again only with the same kind of
 * declaration, so `const` at the top becomes `let`, and redeclare() helps with the rest.
 * This is a lexer only: it follows strings, templates, comments, regular
 * expressions and brackets, so that the words inside of those stay untouched. What it does
 * not understand it leaves alone and the engine reports it. Line numbers never change.
 */

const IMPORT = '__clocheImport';
const META = '__clocheImportMeta';

const NAME = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*)?\.?[\d_]*(?:[eE][+-]?\d+)?)n?/y;
const REGEX_AFTER_WORD = new Set([
  'await', 'case', 'delete', 'do', 'else', 'extends', 'in', 'instanceof', 'new', 'of', 'return', 'throw', 'typeof',
  'void', 'yield',
]);
const CONDITION_WORDS = new Set(['if', 'while', 'for', 'with']);

function* tokens(code) {
  const open = [];
  let at = 0;
  let last = { kind: 'start', text: '' };
  let beforeParen = '';

  const isRegexAllowed = () => {
    if (last.kind === 'start') return true;
    if (last.kind === 'word') return REGEX_AFTER_WORD.has(last.text);
    if (last.kind !== 'mark') return false;
    if (last.text === ')') return CONDITION_WORDS.has(beforeParen);
    return last.text !== ']' && last.text !== '++' && last.text !== '--';
  };

  while (at < code.length) {
    const from = at;
    const c = code[at];
    if (/\s/.test(c)) { at++; continue; }
    if (c === '/' && code[at + 1] === '/') { at = endOfLine(code, at); continue; }
    if (c === '/' && code[at + 1] === '*') { at = after(code, '*/', at + 2); continue; }
    let token;
    if (c === '"' || c === "'") {
      at = endOfString(code, at);
      token = { kind: 'string' };
    } else if (c === '`') {
      at = endOfTemplate(code, at + 1);
      if (code[at - 1] === '{') open.push({ mark: '`' });
      token = { kind: code[at - 1] === '{' ? 'mark' : 'string' };
    } else if (c === '}' && open.at(-1)?.mark === '`') {
      at = endOfTemplate(code, at + 1);
      if (code[at - 1] !== '{') open.pop();
      token = { kind: code[at - 1] === '{' ? 'mark' : 'string' };
    } else if (c === '/' && isRegexAllowed()) {
      at = endOfRegex(code, at);
      token = { kind: 'regex' };
    } else if (/[0-9]/.test(c) || (c === '.' && /[0-9]/.test(code[at + 1] ?? ''))) {
      NUMBER.lastIndex = at;
      at += NUMBER.exec(code)[0].length || 1;
      token = { kind: 'number' };
    } else {
      NAME.lastIndex = at;
      const name = NAME.exec(code);
      if (name !== null) {
        at += name[0].length;
        token = { kind: 'word' };
      } else {
        at += (code.startsWith('++', at) || code.startsWith('--', at)) ? 2 : 1;
        token = { kind: 'mark' };
        if (c === '(') open.push({ mark: c, word: last.text });
        else if (c === '{' || c === '[') open.push({ mark: c });
        else if (c === ')' || c === '}' || c === ']') beforeParen = open.pop()?.word ?? '';
      }
    }
    token.text = code.slice(from, at);
    token.from = from;
    token.to = at;
    token.depth = open.length;
    token.previous = last.text;
    last = token;
    yield token;
  }
}

function endOfLine(code, at) {
  while (at < code.length && code[at] !== '\n') at++;
  return at;
}

function after(code, text, at) {
  const found = code.indexOf(text, at);
  return found < 0 ? code.length : found + text.length;
}

function endOfString(code, at) {
  const quote = code[at++];
  while (at < code.length && code[at] !== quote && code[at] !== '\n') at += code[at] === '\\' ? 2 : 1;
  return Math.min(at + 1, code.length);
}

/* Ends after the closing backquote or after the `${` that interrupts the text. */
function endOfTemplate(code, at) {
  while (at < code.length) {
    if (code[at] === '`') return at + 1;
    if (code[at] === '$' && code[at + 1] === '{') return at + 2;
    at += code[at] === '\\' ? 2 : 1;
  }
  return code.length;
}

function endOfRegex(code, at) {
  let inClass = false;
  for (at++; at < code.length && code[at] !== '\n'; at++) {
    if (code[at] === '\\') at++;
    else if (code[at] === '[') inClass = true;
    else if (code[at] === ']') inClass = false;
    else if (code[at] === '/' && !inClass) break;
  }
  at++;
  while (/[a-z]/.test(code[at] ?? '')) at++;
  return at;
}

/* `{a, b as c, default as d}` after the brace; gives [names, index after]. */
function namedList(list, index) {
  const pairs = [];
  while (list[index] !== undefined && list[index].text !== '}') {
    const outer = list[index++];
    let inner = outer;
    if (list[index]?.text === 'as') {
      inner = list[index + 1];
      index += 2;
    }
    if (inner?.kind !== 'word') return null;
    pairs.push([outer.kind === 'string' ? outer.text : JSON.stringify(outer.text), inner.text]);
    if (list[index]?.text === ',') index++;
    else if (list[index]?.text !== '}') return null;
  }
  return list[index] === undefined ? null : [pairs, index + 1];
}

/* The static import that begins at list[index], or null. */
function staticImport(list, index) {
  let at = index + 1;
  const found = { pairs: [] };
  if (list[at]?.kind !== 'string') {
    if (list[at]?.kind === 'word') {
      found.pairs.push(['"default"', list[at].text]);
      at++;
      if (list[at]?.text === ',') at++;
      else if (list[at]?.text !== 'from') return null;
    }
    if (list[at]?.text === '*' && list[at + 1]?.text === 'as') {
      if (list[at + 2]?.kind !== 'word') return null;
      found.pairs.push(['"*"', list[at + 2].text]);
      at += 3;
    } else if (list[at]?.text === '{') {
      const named = namedList(list, at + 1);
      if (named === null) return null;
      found.pairs.push(...named[0]);
      at = named[1];
    }
    if (list[at]?.text !== 'from') return null;
    at++;
  }
  if (list[at]?.kind !== 'string') return null;
  found.source = list[at].text;
  found.to = list[at].to;
  found.next = at + 1;
  if ((list[at + 1]?.text === 'with' || list[at + 1]?.text === 'assert') && list[at + 2]?.text === '{') {
    let end = at + 2;
    while (list[end] !== undefined && list[end].text !== '}') end++;
    if (list[end] === undefined) return null;
    found.attributes = [list[at + 2].from, list[end].to];
    found.to = list[end].to;
    found.next = end + 1;
  }
  return found;
}

function importText(code, found) {
  const names = found.pairs.map(([outer]) => outer).join(', ');
  const attributes = found.attributes ? `, {with: ${code.slice(...found.attributes)}}` : '';
  const call = `await ${IMPORT}.static(${found.source}, [${names}]${attributes})`;
  if (found.pairs.length === 0) return `void ${call}`;
  return `let {${found.pairs.map((pair) => pair.join(': ')).join(', ')}} = ${call}`;
}

/* What stands in for the `export` that begins at list[index]: [text, end, next]. */
function exportEdit(list, index) {
  const next = list[index + 1];
  if (next?.text === 'default') {
    const word = list[index + 2];
    const isFunction = word?.text === 'function' || word?.text === 'class' ||
      (word?.text === 'async' && list[index + 3]?.text === 'function');
    let name = list[index + (word?.text === 'async' ? 4 : 3)];
    if (name?.text === '*') name = list[index + (word?.text === 'async' ? 5 : 4)];
    const isNamed = name?.kind === 'word' && name.text !== 'extends';
    if (!isFunction) return ['0, ', next.to, index + 2];
    return [isNamed ? '' : 'void ', next.to, index + 2];
  }
  if (next?.text !== '{' && next?.text !== '*') return ['', list[index].to, index + 1];
  let end = index + 1;
  while (list[end] !== undefined && list[end].text !== '}' && next.text === '{') end++;
  for (let ahead = end; ahead < Math.min(end + 4, list.length); ahead++) {
    if (list[ahead].text === 'from' && list[ahead + 1]?.kind === 'string') end = ahead + 1;
  }
  return list[end] === undefined ? null : ['', list[end].to, end + 1];
}

/* Newlines kept so that later lines keep their numbers. */
function padded(code, from, to, text) {
  const wanted = code.slice(from, to).split('\n').length - text.split('\n').length;
  return text + '\n'.repeat(Math.max(0, wanted));
}

/* One edit at list[index], as {from, to, text, next}, or null for none. */
function editAt(code, list, index) {
  const token = list[index];
  const next = list[index + 1];
  if (token.kind !== 'word' || token.previous === '.' || token.previous === '?.') return null;
  if (token.text === 'import' && next?.text === '(') {
    return { from: token.from, to: token.to, text: `${IMPORT}.dynamic`, next: index + 1 };
  }
  if (token.text === 'import' && next?.text === '.' && list[index + 2]?.text === 'meta') {
    return { from: token.from, to: list[index + 2].to, text: META, next: index + 3 };
  }
  if (token.depth > 0) return null;
  if (token.text === 'const') return { from: token.from, to: token.to, text: 'let', next: index + 1 };
  if (token.text === 'import') {
    const found = staticImport(list, index);
    if (found === null) return null;
    return { from: token.from, to: found.to, text: importText(code, found), next: found.next };
  }
  if (token.text !== 'export' || next === undefined || next.text === '=' || next.text === ':') return null;
  const edit = exportEdit(list, index);
  return edit && { from: token.from, to: edit[1], text: edit[0], next: edit[2] };
}

function applyEdits(code, list, edit) {
  let out = '';
  let done = 0;
  for (let index = 0; index < list.length;) {
    const found = edit(code, list, index);
    if (found === null) {
      index++;
      continue;
    }
    out += code.slice(done, found.from) + padded(code, found.from, found.to, found.text);
    done = found.to;
    index = found.next;
  }
  return out + code.slice(done);
}

/* The cell with its imports, exports and constants rewritten. */
function rewrite(code) {
  if (!/\b(?:import|export|const)\b/.test(code)) return code;
  return applyEdits(code, [...tokens(code)], editAt);
}

/*
 * The cell with every declaration at its top of one kind (`let` or `var`), for a name that an earlier
 * cell declared with the other. For `let`, the function of that name becomes a variable too.
 */
function redeclare(code, kind, name) {
  return applyEdits(code, [...tokens(code)], (text, list, index) => {
    const token = list[index];
    if (token.kind !== 'word' || token.depth > 0 || token.previous === '.') return null;
    if (token.text === 'let' || token.text === 'var') {
      return { from: token.from, to: token.to, text: kind, next: index + 1 };
    }
    return kind === 'let' ? functionEdit(text, list, index, name) : null;
  });
}

function functionEdit(code, list, index, name) {
  const isAsync = list[index].text === 'async' && list[index + 1]?.text === 'function';
  const word = index + (isAsync ? 1 : 0);
  if (list[word].text !== 'function') return null;
  const isGenerator = list[word + 1]?.text === '*';
  if (list[word + (isGenerator ? 2 : 1)]?.text !== name) return null;
  const end = list.findIndex((token, at) => at > word && token.text === '}' && token.depth === 0);
  if (end < 0) return null;
  const from = list[index].from;
  const to = list[end].to;
  return { from, to, text: `let ${name} = ${code.slice(from, to)};`, next: end + 1 };
}

module.exports = { rewrite, redeclare };
