// What script adds to pages that also work without it: times that tick, copying, theme,
// keys that move (none of them decides), and the review page's conveniences.
(function () {
  'use strict';
  var root = document.documentElement, body = document.body;
  function all(sel, from) { return Array.from((from || document).querySelectorAll(sel)); }
  function on(type, sel, act) {
    document.addEventListener(type, function (e) {
      var el = e.target.closest && e.target.closest(sel);
      if (el) act(el, e);
    });
  }
  function store(name, value) {
    try {
      if (value === undefined) return localStorage.getItem('gatehouse.' + name);
      if (value === null || value === '') localStorage.removeItem('gatehouse.' + name);
      else localStorage.setItem('gatehouse.' + name, value);
    } catch (e) { /* storage may be switched off */ }
    return null;
  }

  // ---- times, in the reader's zone, against the server's clock
  var zone = body.getAttribute('data-zone') || undefined; // the reader chose one in the settings
  try { new Date().toLocaleString([], { timeZone: zone }); } catch (e) { zone = undefined; /* this browser does not know it */ }
  var skew = Date.now() - Date.parse(body.getAttribute('data-now') || '') || 0;
  function two(big, unit, small, smallUnit) {
    return big + ' ' + unit + (small && big < 10 ? ' ' + small + ' ' + smallUnit : '');
  }
  function duration(s) {
    if (s < 60) return Math.max(0, Math.floor(s)) + ' s';
    if (s < 3600) return two(Math.floor(s / 60), 'min', Math.floor(s % 60), 's');
    if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor(s % 3600 / 60), 'min');
    return two(Math.floor(s / 86400), 'd', Math.floor(s % 86400 / 3600), 'h');
  }
  function relative(at, kind) {
    var s = (Date.now() - skew - at) / 1000;
    if (kind === 'clock') return new Date(at).toLocaleTimeString([], { hour12: false, timeZone: zone });
    if (kind === 'moment') return new Date(at).toLocaleString([], { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hour12: false, timeZone: zone });
    if (s < 0) return 'in ' + duration(-s);
    if (kind === 'since') return duration(s);
    if (s < 86400) return s < 5 ? 'now' : duration(s) + ' ago';
    var d = new Date(at), date = d.toLocaleDateString([], { day: 'numeric', month: 'short', year: d.getFullYear() === new Date().getFullYear() ? undefined : 'numeric', timeZone: zone });
    return date + ' ' + d.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false, timeZone: zone });
  }
  function tick() {
    if (document.hidden) return;
    all('time[data-rel]').forEach(function (t) {
      var at = Date.parse(t.dateTime), text = relative(at, t.dataset.rel);
      if (t.textContent !== text) t.textContent = text;
      if (!t.dataset.exact) { t.title = new Date(at).toLocaleString([], { timeZoneName: 'short', hour12: false, timeZone: zone }); t.dataset.exact = '1'; }
    });
  }
  setInterval(tick, 1000);

  function enhance() {
    all('[data-needs-js]').forEach(function (el) { el.hidden = false; });
    all('[data-theme-set]').forEach(function (b) { b.setAttribute('aria-pressed', String(b.dataset.themeSet === (store('theme') || ''))); });
    all('[data-density-set]').forEach(function (b) { b.setAttribute('aria-pressed', String(b.dataset.densitySet === (store('density') || ''))); });
    scrollers();
    tick();
  }
  // What scrolls on its own is reached by keys in every browser; what does not is no stop on the way.
  function scrollers() {
    all('.foreign-text, main pre, .table-box').forEach(function (el) {
      var over = el.scrollHeight > el.clientHeight + 1 || el.scrollWidth > el.clientWidth + 1;
      if (over && !el.hasAttribute('tabindex') && !el.querySelector('a, button, input')) { el.tabIndex = 0; el.dataset.scrolls = '1'; }
      else if (!over && el.dataset.scrolls) { el.removeAttribute('tabindex'); delete el.dataset.scrolls; }
    });
  }
  document.addEventListener('toggle', scrollers, true);

  // ---- small things
  function setting(name, value) {
    store(name, value);
    if (value) root.setAttribute('data-' + name, value);
    else root.removeAttribute('data-' + name);
    enhance();
  }
  on('click', '[data-theme-set]', function (b) { setting('theme', b.dataset.themeSet); });
  on('click', '[data-density-set]', function (b) { setting('density', b.dataset.densitySet); });
  on('click', '[data-copy]', function (b) {
    if (!navigator.clipboard) return;
    navigator.clipboard.writeText(b.dataset.copy).then(function () {
      b.classList.add('copied');
      setTimeout(function () { b.classList.remove('copied'); }, 1500);
    }, function () { /* the browser refused: nothing was copied, nothing is said */ });
  });
  on('click', '[data-close]', function (b) {
    document.getElementById(b.dataset.close).hidden = true;
    store('closed.' + b.dataset.close, '1');
  });
  all('[data-close]').forEach(function (b) { if (store('closed.' + b.dataset.close)) document.getElementById(b.dataset.close).hidden = true; });
  var help = document.getElementById('help');
  function showHelp() {
    if (!help || help.open) return;
    all('.demo').forEach(function (d) { d.hidden = false; store('closed.' + d.id, null); });
    help.showModal();
  }
  on('click', '[data-help]', showHelp);
  document.addEventListener('click', function (e) {
    all('details.menu[open], details.send-fold[open]').forEach(function (d) { if (!d.contains(e.target)) d.open = false; });
  });
  all('form[data-autopress]').forEach(function (f) {
    var key = 'gatehouse.pressed.' + f.elements.code.value;
    try {
      if (sessionStorage.getItem(key)) return;
      sessionStorage.setItem(key, '1');
    } catch (e) { return; }
    f.requestSubmit();
  });
  on('submit', 'form[method="post"]', function (f, e) {
    if (e.defaultPrevented || f.id === 'verdict') return;
    if (f.dataset.sent) { e.preventDefault(); return; }
    f.dataset.sent = '1';
  });
  window.addEventListener('pageshow', function () { all('form[data-sent]').forEach(function (f) { delete f.dataset.sent; }); });

  // ---- the live parts changed: title, icon, and one sentence for readers aloud
  var spoke = 0;
  document.addEventListener('gh-morphed', function () {
    enhance();
    var state = document.querySelector('.tab-state');
    if (!state || document.title === state.dataset.tabTitle) return;
    document.title = state.dataset.tabTitle;
    document.getElementById('favicon').href = state.dataset.tabIcon;
    var badge = document.querySelector('.status-line .badge');
    if (badge && Date.now() - spoke > 5000) {
      spoke = Date.now();
      document.getElementById('announce').textContent = badge.textContent.trim();
    }
  });

  // ---- keys
  var keysOn = store('keys') !== 'off', pendingG = 0;
  all('[data-keys-toggle]').forEach(function (c) {
    c.checked = keysOn;
    c.addEventListener('change', function () { keysOn = c.checked; store('keys', keysOn ? null : 'off'); });
  });
  function typing(el) { return el && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && el.type !== 'checkbox'); }
  function visible(el) { return el.offsetParent !== null; }
  var at = -1, review = document.querySelector('.review');
  function step(by) {
    var list = all('[data-row]').filter(visible);
    if (!list.length) return;
    at = Math.max(0, Math.min(list.length - 1, at + by));
    all('.cursor').forEach(function (c) { c.classList.remove('cursor'); });
    list[at].classList.add('cursor');
    var focus = list[at].querySelector('[data-open], summary, a');
    if (focus) focus.focus({ preventScroll: true });
    list[at].scrollIntoView({ block: 'nearest' });
  }
  var moves = {
    '/': function () { var s = document.getElementById('search'); if (s) s.focus(); },
    '?': showHelp,
    j: function () { step(1); },
    k: function () { step(-1); },
    o: function () { var a = document.querySelector('.cursor [data-open]'); if (a) a.click(); }
  };
  var reviewKeys = 'jko][npxXvuacre'; // reading.js and review.js answer these
  document.addEventListener('keydown', function (e) {
    if (e.key === 'Escape') { all('details.menu[open], details.send-fold[open]').forEach(function (d) { d.open = false; }); if (typing(document.activeElement)) document.activeElement.blur(); return; }
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { sendOpen(e); return; }
    if (!keysOn || e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || (help && help.open)) return;
    var place = pendingG && Date.now() - pendingG < 1500 && /^[a-z]$/.test(e.key) && document.querySelector('.main-nav a[data-key="' + e.key + '"]');
    if (place) { pendingG = 0; location.href = place.href; return; }
    pendingG = e.key === 'g' ? Date.now() : 0;
    if (review && reviewKeys.includes(e.key)) {
      e.preventDefault();
      document.dispatchEvent(new CustomEvent('gh-key', { detail: e.key }));
    } else if (moves[e.key]) {
      e.preventDefault();
      moves[e.key]();
    }
  });

  // What a link or a form leads to has the focus.
  function openTarget() {
    var t = location.hash && document.getElementById(location.hash.slice(1));
    if (t && (t.matches('input') || t.id === 'outcome' || t.id === 'flash')) t.focus();
  }
  window.addEventListener('hashchange', openTarget);
  function sendOpen(e) {
    var f = e.target.closest('form');
    if (!f) return;
    e.preventDefault();
    if (f.id !== 'verdict') f.requestSubmit();
    else document.dispatchEvent(new CustomEvent('gh-key', { detail: 'send' }));
  }

  // What a form did is said once: neither a reload nor a copied address says it again.
  var here = new URL(location.href);
  if (here.searchParams.has('done')) {
    here.searchParams.delete('done');
    history.replaceState(null, '', here);
  }

  enhance();
  openTarget();

  // ---- files to send: what was chosen, and what the server would not take
  function size(n) {
    if (n < 1000) return n + ' B';
    return n < 1e6 ? Number((n / 1e3).toPrecision(3)) + ' kB' : Number((n / 1e6).toPrecision(3)) + ' MB';
  }
  function mega(n) { return n / 1048576 + ' MB'; }
  function chosen(input) {
    var d = input.dataset, files = Array.from(input.files), sum = 0, why = '';
    var list = document.getElementById(input.id + '-chosen'), error = document.getElementById(input.id + '-error');
    list.textContent = '';
    files.forEach(function (f) {
      var li = document.createElement('li');
      li.textContent = f.name + ' ';
      li.appendChild(document.createElement('span')).textContent = size(f.size);
      li.lastChild.className = 'muted';
      list.appendChild(li);
      sum += f.size;
      if (f.size > Number(d.one)) why = f.name + ' has ' + size(f.size) + '; ' + mega(d.one) + ' is the limit of one file.';
    });
    if (files.length > Number(d.count)) why = 'These are ' + files.length + ' files; ' + d.count + ' is the limit.';
    else if (!why && sum > Number(d.sum)) why = 'The files have ' + size(sum) + ' together; ' + mega(d.sum) + ' is the limit.';
    list.hidden = !files.length;
    error.textContent = why;
    error.hidden = !why;
    input.setCustomValidity(why); // the form is not sent with them
  }
  on('change', 'input[data-attach]', chosen);
  document.addEventListener('reset', function (e) {
    setTimeout(function () { all('input[data-attach]', e.target).forEach(chosen); });
  });
})();
