// Merges a fresh answer into the page in place, as an htmx extension named "morph":
// focus, open details, typed text and running animations stay; new rows wait when
// the reader has scrolled or has the focus in the list.
(function () {
  'use strict';
  var KEPT = ['cursor', 'current', 'is-viewed', 'copied', 'changed', 'writing', 'is-busy', 'htmx-request'];
  var letThrough = false; // set while the reader asked for the new rows

  function sameKind(a, b) {
    return a.nodeType === b.nodeType && (a.nodeType !== 1 || (a.tagName === b.tagName && !a.id && !b.id));
  }

  // What a row says without its ticking times: only a change of this is tinted.
  function words(row) {
    var copy = row.cloneNode(true);
    copy.querySelectorAll('time').forEach(function (t) { t.remove(); });
    return copy.textContent.replace(/\s+/g, ' ');
  }

  function syncAttributes(from, to) {
    Array.from(to.attributes).forEach(function (a) {
      if (a.name === 'open' || (a.name === 'hidden' && to.hasAttribute('data-needs-js'))) return;
      if (a.name === 'class') return;
      if (from.getAttribute(a.name) !== a.value) from.setAttribute(a.name, a.value);
    });
    Array.from(from.attributes).forEach(function (a) {
      if (a.name === 'open' || a.name === 'class' || a.name === 'hidden') return;
      if (!to.hasAttribute(a.name)) from.removeAttribute(a.name);
    });
    var kept = KEPT.filter(function (c) { return from.classList.contains(c); });
    var wanted = to.getAttribute('class') || '';
    if (wanted || from.hasAttribute('class')) from.setAttribute('class', wanted);
    kept.forEach(function (c) { from.classList.add(c); });
  }

  function tint(el) {
    el.classList.add('changed');
    setTimeout(function () { el.classList.remove('changed'); }, 1500);
  }

  function morphNode(from, to) {
    if (from.nodeType !== 1) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    if (from.isEqualNode(to)) return;
    var changed = from.hasAttribute('data-row') && words(from) !== words(to);
    syncAttributes(from, to);
    if (from.tagName === 'TEXTAREA' || from.tagName === 'SELECT') return;
    if (from.hasAttribute('data-hold') && !letThrough && reading(from)) holdRows(from, to);
    else morphChildren(from, to);
    if (changed) tint(from);
  }

  function morphChildren(from, to) {
    var keyed = new Map();
    Array.from(from.children).forEach(function (c) { if (c.id) keyed.set(c.id, c); });
    var cursor = from.firstChild;
    Array.from(to.childNodes).forEach(function (want) {
      var match = null;
      if (want.nodeType === 1 && want.id) {
        match = keyed.get(want.id) || null;
        if (match && match.tagName !== want.tagName) match = null;
      } else if (cursor && sameKind(cursor, want)) {
        match = cursor;
      }
      if (!match) {
        from.insertBefore(want, cursor);
        if (want.nodeType === 1 && want.hasAttribute('data-row')) tint(want);
        return;
      }
      if (match === cursor) cursor = cursor.nextSibling;
      else from.insertBefore(match, cursor);
      morphNode(match, want);
    });
    while (cursor) {
      var next = cursor.nextSibling;
      cursor.remove();
      cursor = next;
    }
  }

  // The reader is in this list: scrolled past its first row, or with the focus in it.
  function reading(list) {
    return list.contains(document.activeElement) || (window.scrollY > 80 && list.getBoundingClientRect().top < 60);
  }

  // Known rows are renewed where they are; new ones are only counted.
  function holdRows(from, to) {
    var fresh = 0;
    to.querySelectorAll('[data-row]').forEach(function (want) {
      var have = want.id && document.getElementById(want.id);
      if (have && from.contains(have)) morphNode(have, want);
      else fresh++;
    });
    offer(from, fresh);
  }

  function offer(list, n) {
    var name = 'new-' + list.getAttribute('data-hold');
    var box = document.getElementById(name);
    if (!box && n > 0) {
      box = document.createElement('div');
      box.id = name;
      box.className = 'new-rows';
      var button = document.createElement('button');
      button.type = 'button';
      button.addEventListener('click', function () {
        var part = list.closest('[data-live]');
        letThrough = true;
        document.addEventListener('htmx:afterSettle', function () { letThrough = false; window.scrollTo(0, 0); }, { once: true });
        box.remove();
        if (part) window.htmx.trigger(part, 'gh-refresh');
      });
      box.appendChild(button);
      var part = list.closest('[data-live]') || list;
      part.parentNode.insertBefore(box, part);
    }
    if (box) {
      if (n > 0) box.firstChild.textContent = n + ' new';
      else box.remove();
    }
  }

  // A bar of another revision belongs to another diff than the one being read, or to the
  // same one with other checks.
  function otherRevision(target, next) {
    return ['data-digest', 'data-revision'].some(function (name) {
      var mine = target.getAttribute(name), theirs = next.getAttribute(name);
      return mine && theirs && mine !== theirs;
    });
  }

  // Other scripts merge what they fetched themselves in the same way; new rows do not wait,
  // for the reader asked for them.
  window.ghMorph = function (from, to) {
    letThrough = true;
    try { morphNode(from, to); } finally { letThrough = false; }
  };

  window.htmx.defineExtension('morph', {
    isInlineSwap: function (style) { return style === 'morph'; },
    handleSwap: function (style, target, fragment) {
      if (style !== 'morph') return false;
      var next = fragment.nodeType === 11 ? fragment.firstElementChild : fragment;
      if (!next) return [];
      if (otherRevision(target, next)) {
        target.dispatchEvent(new CustomEvent('gh-superseded', { bubbles: true }));
        return [target];
      }
      morphNode(target, next);
      document.dispatchEvent(new CustomEvent('gh-morphed', { detail: { part: target } }));
      return [target];
    }
  });
})();
