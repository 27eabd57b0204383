// Reading on the review page: moving by keys, files that were viewed, folded lines that
// expand in place, links to lines, and on a phone one file at a time. Without it the same
// links and forms load pages.
(function () {
  'use strict';
  var page = document.querySelector('.review');
  if (!page) return;
  function all(sel, from) { return Array.from((from || document).querySelectorAll(sel)); }
  function byId(id) { return document.getElementById(id); }
  function on(type, sel, act) {
    document.addEventListener(type, function (e) {
      var el = e.target.closest && e.target.closest(sel);
      if (el) act(el, e);
    });
  }
  function announce(text) { byId('announce').textContent = text; }
  function phone() { return matchMedia('(max-width: 640px)').matches; }
  function visible(el) { return el.offsetParent !== null; }

  // ---- files: which is read, and going to another
  var led = null;
  function files() { return all('.file'); }
  function current() {
    var list = files(), marked = page.querySelector('.file.is-current');
    if (phone() && marked) return marked;
    // One near the end cannot be scrolled to the top: until the reader scrolls, it is the one.
    if (led && led.file.isConnected && Math.abs(window.scrollY - led.y) < 4) return led.file;
    return list.filter(function (f) { return f.getBoundingClientRect().bottom > 120; })[0] || list[list.length - 1];
  }
  function item(file) { return document.querySelector('.file-item[data-file="' + file.id + '"]'); }
  // On a phone only the current file is shown; its name stands in the closed list.
  function show(file) {
    all('.file.is-current').forEach(function (f) { f.classList.remove('is-current'); });
    all('.file-item.current').forEach(function (f) { f.classList.remove('current'); });
    if (!file) return;
    file.classList.add('is-current');
    var mine = item(file), now = document.querySelector('[data-file-now]');
    if (!mine) return;
    mine.classList.add('current');
    if (!now || !phone()) return;
    var items = all('.file-item');
    now.textContent = (items.indexOf(mine) + 1) + '/' + items.length + ' ' + mine.querySelector('.file-name').textContent.trim();
    var size = mine.querySelector('.delta');
    if (size) now.appendChild(size.cloneNode(true)).classList.add('now-size');
  }
  function goTo(file, focus) {
    show(file);
    if (phone()) {
      byId('file-list').open = false;
      byId('files').scrollIntoView();
    } else {
      file.scrollIntoView();
      led = { file: file, y: window.scrollY };
    }
    var head = file.querySelector('summary');
    if (focus && head) head.focus({ preventScroll: true });
  }
  on('click', '.file-item a, .file-walk a', function (a, e) {
    var id = (a.getAttribute('href') || '').slice(1), to = a.getAttribute('href').charAt(0) === '#' && byId(id);
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.button || !to || !to.matches('.file')) return;
    if (!phone()) { show(to); return; }
    e.preventDefault();
    history.replaceState(history.state, '', '#' + id);
    goTo(to, true);
  });

  // ---- files that were viewed: the server keeps the marks
  var sending = Promise.resolve();
  function isViewed(file) { return file.classList.contains('is-viewed'); }
  function draw(file, viewed) {
    var form = file.querySelector('[data-viewed-form]'), mine = item(file);
    file.classList.toggle('is-viewed', viewed);
    form.querySelector('button').setAttribute('aria-pressed', String(viewed));
    file.querySelector('details').open = !viewed;
    if (mine) {
      mine.classList.toggle('is-viewed', viewed);
      mine.querySelector('[data-viewed-word]').hidden = !viewed;
    }
    all('[data-viewed-n]').forEach(function (n) { n.textContent = all('.file-item.is-viewed').length; });
  }
  function mark(file, viewed) {
    var form = file.querySelector('[data-viewed-form]');
    if (!form || isViewed(file) === viewed) return;
    draw(file, viewed);
    var body = new URLSearchParams();
    body.set('revision', form.elements.revision.value);
    body.set('file', form.elements.file.value);
    if (viewed) body.set('viewed', '1');
    // One after the other: the last press is the one that stays.
    sending = sending.then(function () {
      return fetch(form.getAttribute('action'), { method: 'POST', body: body, headers: { Accept: 'application/json' }, credentials: 'same-origin', keepalive: true });
    }).then(function (r) {
      if (!r.ok || new URL(r.url).pathname === '/login') throw new Error('not kept');
      if (viewed) document.dispatchEvent(new CustomEvent('gh-opened'));
    }).catch(function () {
      draw(file, !viewed);
      announce('The mark was not kept: no answer from the server.');
    });
  }
  on('submit', '[data-viewed-form]', function (form, e) {
    if (!window.fetch || !window.URLSearchParams) return;
    e.preventDefault();
    delete form.dataset.sent;
    var file = form.closest('.file');
    mark(file, !isViewed(file));
  });
  function viewNext(file) {
    mark(file, true);
    var items = all('.file-item'), at = items.indexOf(item(file));
    var next = items.slice(at + 1).concat(items.slice(0, at)).filter(function (i) { return !i.classList.contains('is-viewed'); })[0];
    if (!next) { byId('review-bar').focus(); return; }
    var to = byId(next.dataset.file);
    if (to) goTo(to, true);
    else sending.then(function () { location.href = next.querySelector('a').href; });
  }
  on('click', '[data-view-next]', function (a, e) {
    e.preventDefault();
    viewNext(a.closest('.file'));
  });

  // ---- the list of files: a tree with folders that close
  var tree = document.querySelector('[data-tree]');
  function treeItems() { return all('[role="treeitem"]', tree).filter(visible); }
  function fold(dir, open) {
    dir.setAttribute('aria-expanded', String(open));
    dir.nextElementSibling.hidden = !open;
  }
  function plant() {
    tree = document.querySelector('[data-tree]');
    if (!tree || document.querySelector('[data-pick]')) return;
    tree.setAttribute('role', 'tree');
    tree.setAttribute('aria-label', 'Changed files');
    all('li', tree).forEach(function (li) { li.setAttribute('role', 'none'); });
    all('ul', tree).forEach(function (ul) { ul.setAttribute('role', 'group'); });
    all('.dir-name', tree).forEach(function (dir) {
      dir.setAttribute('role', 'treeitem');
      dir.nextElementSibling.id = dir.nextElementSibling.id || 'in-' + dir.dataset.dir;
      dir.setAttribute('aria-owns', dir.nextElementSibling.id);
      if (!dir.hasAttribute('aria-expanded')) fold(dir, true);
      dir.tabIndex = -1;
    });
    all('.file-item a', tree).forEach(function (a) { a.setAttribute('role', 'treeitem'); a.tabIndex = -1; });
    var first = tree.querySelector('[role="treeitem"]');
    if (first) first.tabIndex = 0;
  }
  function reach(el) {
    if (!el) return;
    all('[role="treeitem"]', tree).forEach(function (t) { t.tabIndex = t === el ? 0 : -1; });
    el.focus();
  }
  on('click', '.dir-name[role="treeitem"]', function (dir) { fold(dir, dir.getAttribute('aria-expanded') !== 'true'); });
  on('keydown', '[role="treeitem"]', function (el, e) {
    var list = treeItems(), at = list.indexOf(el), dir = el.matches('.dir-name'), open = el.getAttribute('aria-expanded') === 'true';
    var up = el.closest('[role="group"]');
    switch (e.key) {
    case 'ArrowDown': reach(list[at + 1]); break;
    case 'ArrowUp': reach(list[at - 1]); break;
    case 'Home': reach(list[0]); break;
    case 'End': reach(list[list.length - 1]); break;
    case 'ArrowRight': if (dir && !open) fold(el, true); else if (dir) reach(list[at + 1]); break;
    case 'ArrowLeft': if (dir && open) fold(el, false); else if (up) reach(up.previousElementSibling); break;
    case 'Enter': case ' ': if (!dir && e.key === 'Enter') return; if (dir) el.click(); else el.click(); break;
    default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  });
  on('input', '[data-file-filter]', function (input) {
    var want = input.value.toLowerCase();
    all('.file-item').forEach(function (li) { li.hidden = !li.querySelector('a').title.toLowerCase().includes(want); });
    all('.dir').forEach(function (dir) { dir.hidden = !dir.querySelector('.file-item:not([hidden])'); });
  });
  document.addEventListener('gh-files', plant);

  // ---- folded lines expand in place; the address keeps what is open
  function here(open) {
    var u = new URL(location.href), had = u.searchParams.get('open');
    u.searchParams.set('open', (had ? had + ';' : '') + open);
    u.hash = '';
    return u;
  }
  on('click', 'a[data-open-lines]', function (a, e) {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.button || !window.fetch) return;
    e.preventDefault();
    if (a.dataset.asked) return;
    a.dataset.asked = '1';
    var file = a.closest('.file'), id = file.id, line = a.hash.slice(1), u = here(a.dataset.openLines), ask = new URL(u);
    ask.searchParams.set('part', id);
    ask.searchParams.set('rev', page.dataset.revision);
    var gap = a.closest('.hunk-head'), mark = gap.nextElementSibling && gap.nextElementSibling.querySelector('[id]');
    var rest = a.dataset.from === 'above' && gap.previousElementSibling ? gap.previousElementSibling.querySelector('tr:last-child') : mark;
    var restID = rest && (rest.id || (rest.querySelector('[id]') || {}).id), y = rest ? rest.getBoundingClientRect().top : 0;
    fetch(ask, { credentials: 'same-origin', headers: { Accept: 'text/html' } }).then(function (r) {
      if (!r.ok || new URL(r.url).pathname === '/login') throw new Error('no answer');
      return r.text();
    }).then(function (text) {
      var fresh = new DOMParser().parseFromString(text, 'text/html').getElementById(id);
      if (!fresh) throw new Error('no file');
      document.dispatchEvent(new CustomEvent('gh-redraw', { detail: file }));
      fresh.classList.toggle('is-current', file.classList.contains('is-current'));
      fresh.querySelector('details').open = true;
      file.replaceWith(document.importNode(fresh, true));
      history.replaceState(history.state, '', u);
      var now = restID && byId(restID); // what was read stays where it was on the screen
      if (now) window.scrollBy(0, now.getBoundingClientRect().top - y);
      document.dispatchEvent(new CustomEvent('gh-morphed', { detail: { part: byId(id) } }));
      document.dispatchEvent(new CustomEvent('gh-redrawn', { detail: byId(id) }));
      var first = byId(line), link = first && first.querySelector('a');
      if (link) link.focus({ preventScroll: true });
      announce('Lines shown');
    }).catch(function () { location.href = u.href + a.hash; });
  });

  // ---- a link to a line, or to a range of them: #F3R42, #F3R42-R48
  var ANCHOR = /^#F(\d+)([LR])(\d+)(?:-([LR])(\d+))?$/;
  function rowOf(id) { var el = byId(id); return el && el.closest('tr'); }
  function light() {
    all('.in-range').forEach(function (r) { r.classList.remove('in-range'); });
    var m = ANCHOR.exec(location.hash);
    if (!m || !m[5]) return;
    for (var n = Number(m[3]); n <= Number(m[5]) && n < Number(m[3]) + 1000; n++) {
      var r = rowOf('F' + m[1] + m[2] + n);
      if (r) r.classList.add('in-range');
    }
  }
  // What the link names may be closed, folded, or on another page.
  function openTarget() {
    var m = ANCHOR.exec(location.hash), id = m ? 'F' + m[1] + m[2] + (m[5] || m[3]) : location.hash.slice(1), t = id && byId(id);
    light();
    if (t) {
      var file = t.closest('.file'), d = file && file.querySelector('details');
      if (!file) return;
      show(file);
      if (d && !d.open) d.open = true;
      if (phone()) { byId('file-list').open = false; }
      if (m || phone()) t.scrollIntoView({ block: m ? 'center' : 'start' });
      return;
    }
    if (!m) return;
    var u = new URL(location.href), asked = 'gatehouse.sought.' + u.pathname + location.hash;
    try {
      if (sessionStorage.getItem(asked)) { sessionStorage.removeItem(asked); announce('That line is not in this revision.'); return; }
      sessionStorage.setItem(asked, '1');
    } catch (e) { return; } // without storage it could be asked for ever
    u.searchParams.set('at', location.hash.slice(1));
    location.replace(u);
  }
  window.addEventListener('hashchange', openTarget);
  document.addEventListener('gh-range', light);
  document.addEventListener('gh-redrawn', light);

  // ---- how lines look: remembered. On a phone they wrap unless somebody said otherwise.
  var root = document.documentElement;
  function wraps() {
    var set = root.getAttribute('data-wrap');
    return set === 'on' || set !== 'off' && phone();
  }
  function dims() { return root.getAttribute('data-space') === 'dim'; }
  function look(name, value) {
    if (value) root.setAttribute('data-' + name, value);
    else root.removeAttribute('data-' + name);
    try {
      if (value) localStorage.setItem('gatehouse.' + name, value);
      else localStorage.removeItem('gatehouse.' + name);
    } catch (e) { /* storage may be switched off */ }
    drawLooks();
  }
  function drawLooks() {
    all('[data-wrap-lines]').forEach(function (b) { b.setAttribute('aria-pressed', String(wraps())); });
    all('[data-space-toggle]').forEach(function (b) { b.setAttribute('aria-pressed', String(dims())); });
  }
  on('click', '[data-wrap-lines]', function () { look('wrap', wraps() ? 'off' : 'on'); });
  on('click', '[data-space-toggle]', function () { look('space', dims() ? '' : 'dim'); });

  // ---- keys: they move and open
  var at = { hunk: -1, warn: -1 };
  function step(kind, list, by) {
    list = list.filter(visible);
    if (!list.length) return;
    at[kind] = Math.max(0, Math.min(list.length - 1, at[kind] + by));
    var el = list[at[kind]];
    all('.cursor').forEach(function (c) { c.classList.remove('cursor'); });
    el.classList.add('cursor');
    var focus = el.matches('a,button,summary,[tabindex]') ? el : el.querySelector('summary, a');
    if (focus) focus.focus({ preventScroll: true });
    el.scrollIntoView({ block: 'nearest' });
  }
  function walk(by) {
    var list = files(), now = list.indexOf(current()), started = led || window.scrollY > 0 || phone();
    var to = list[Math.max(0, Math.min(list.length - 1, started ? now + by : 0))];
    if (to) goTo(to, true);
  }
  var drawing = false;
  window.addEventListener('scroll', function () {
    if (drawing || phone()) return;
    drawing = true;
    requestAnimationFrame(function () { drawing = false; show(current()); });
  }, { passive: true });
  function toggle(file) { if (file) { var d = file.querySelector('details'); d.open = !d.open; } }
  var moves = {
    j: function () { step('hunk', all('[data-hunk]'), 1); },
    k: function () { step('hunk', all('[data-hunk]'), -1); },
    ']': function () { walk(1); },
    '[': function () { walk(-1); },
    n: function () { step('warn', all('[data-warning], [data-remark]'), 1); },
    p: function () { step('warn', all('[data-warning], [data-remark]'), -1); },
    o: function () {
      var cursor = document.querySelector('.cursor'), more = cursor && cursor.querySelector('a[data-open-lines], a.go');
      if (more) more.click();
      else toggle(cursor && cursor.closest('.file') || current());
    },
    x: function () { toggle(current()); },
    X: function () { var ds = all('.file > details'), shut = ds.some(function (d) { return d.open; }); ds.forEach(function (d) { d.open = !shut; }); },
    v: function () { var f = current(); if (f) viewNext(f); },
    u: function () { var a = document.querySelector('[data-layout]:not([aria-current])'); if (a) a.click(); },
    c: function () { document.dispatchEvent(new CustomEvent('gh-comment')); }
  };
  document.addEventListener('gh-key', function (e) { if (moves[e.detail]) moves[e.detail](); });

  plant();
  drawLooks();
  var list = byId('file-list'); // a question has none
  if (list && matchMedia('(max-width: 1100px)').matches) list.open = false;
  if (files().length) {
    show(files()[0]);
  }
  if (phone()) all('[data-shut-on-phone]').forEach(function (d) { d.open = false; });
  openTarget();
})();
