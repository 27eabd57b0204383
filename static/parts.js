// What agents write while they write it: pieces come by number of turn and by offset, may
// come twice or be missing, and are shown as text until the stored turn takes their place.
window.ghParts = (function () {
  'use strict';
  var MOST = 60000; // characters shown of one piece; the stored turn has all

  // Foreign text has no hidden characters here either.
  function visible(s) {
    return s.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029\u115f\u1160\u3164\uffa0\u2800\u034f\ufe00-\ufe0e]/gu, function (c) {
      if (c === '\n' || c === '\t') return c;
      return '⟦U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '⟧';
    });
  }
  function el(tag, className, words) {
    var e = document.createElement(tag);
    if (className) e.className = className;
    if (words) e.textContent = words;
    return e;
  }

  // A message that is being written: its pieces in order, each with its own element.
  function Message() { this.turn = 0; this.over = 0; this.pieces = []; this.ends = {}; }

  // take adds a piece: {turn, kind, tool, text, offset}. It reports whether there is news.
  Message.prototype.take = function (p) {
    if (p.turn < this.turn || p.turn <= this.over) return false;
    if (p.turn > this.turn || p.kind === 'reset') { this.turn = p.turn; this.pieces = []; this.ends = {}; }
    if (p.kind === 'reset') return true;
    var key = p.kind + ' ' + (p.tool || ''), have = this.ends[key] || 0, at = p.offset || 0;
    var chars = Array.from(p.text || ''), piece = this.pieces[this.pieces.length - 1];
    if (chars.length && at + chars.length <= have) return false;
    this.ends[key] = Math.max(have, at + chars.length);
    if (!piece || piece.key !== key) {
      piece = { key: key, kind: p.kind, tool: p.tool || '', text: '', chars: 0 };
      this.pieces.push(piece);
    }
    if (at > have) piece.text += '…'; // some were missed
    if (at < have) chars = chars.slice(have - at);
    piece.text += visible(chars.join(''));
    if (piece.text.length > MOST) piece.text = '…' + piece.text.slice(-MOST);
    piece.chars += chars.length;
    piece.stale = true;
    return true;
  };

  // done forgets what is stored: turns up to n.
  Message.prototype.done = function (n) {
    this.over = Math.max(this.over, n);
    if (this.turn <= n) this.pieces = [];
  };
  Message.prototype.empty = function () { return !this.pieces.length; };

  // draw puts the pieces into an element; open details stay open.
  Message.prototype.draw = function (into) {
    this.pieces.forEach(function (p, i) {
      if (!p.box) {
        if (p.kind === 'thinking') {
          p.box = el('details', 'thought');
          p.head = el('summary', '');
          p.words = el('div', 'foreign-text');
          p.box.appendChild(p.head);
          p.box.appendChild(p.words);
        } else if (p.kind === 'tool') {
          p.box = el('p', 'live-call');
          p.box.appendChild(el('code', 'call-name', visible(p.tool)));
          p.words = el('span', 'call-about');
          p.box.appendChild(p.words);
        } else {
          p.box = el('div', 'foreign');
          p.words = el('div', 'foreign-text');
          p.box.appendChild(p.words);
        }
      }
      if (p.stale) {
        p.stale = false;
        p.words.textContent = p.kind === 'tool' ? ' ' + p.text.replace(/\s+/g, ' ').slice(0, 200) : p.text;
        if (p.head) p.head.textContent = 'thinking, ' + p.chars + ' characters';
      }
      if (into.children[i] !== p.box) into.insertBefore(p.box, into.children[i] || null);
    });
    while (into.children.length > this.pieces.length) into.removeChild(into.lastChild);
    into.hidden = !this.pieces.length;
  };
  return { Message: Message, visible: visible };
})();
