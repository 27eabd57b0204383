// The number of requests that wait for the reader in the tab's title, and the browser's own
// notices. The tab that reads the stream asks the server after an event and tells the others.
// Notices are shown only where the reader switched them on in the settings, and never while
// a page of Gatehouse is looked at.
(function () {
  'use strict';
  var body = document.body, session = body.getAttribute('data-session') || '';
  if (!body.getAttribute('data-stream') || !window.fetch) return;

  var PAUSE = 1000, LISTEN = 250; // ms between two questions; for another tab to say that it is looked at
  var over = false, asking = false, askedAt = 0, timer = null, dirty = false, tasks = new Set();
  var channel = null;
  var looked = null; // called when another tab says that it is looked at

  function stored(name, value) {
    try {
      if (value === undefined) return localStorage.getItem('gatehouse.' + name);
      if (value === null) localStorage.removeItem('gatehouse.' + name);
      else localStorage.setItem('gatehouse.' + name, value);
    } catch (e) { /* storage may be switched off */ }
    return null;
  }
  function can() { return 'Notification' in window && window.isSecureContext && !/Android/.test(navigator.userAgent); } // there only apps may
  // What the browser was told about this address; it may be told otherwise while the page is open.
  var status = null;
  function allowed() { return status ? status.state : Notification.permission; }
  function on() { return can() && allowed() === 'granted' && stored('notices') === 'on'; }
  function here() { return !document.hidden && document.hasFocus(); }

  // ---- the title
  function badge(n) {
    var bare = document.title.replace(/^\(\d[\d,]*\) /, '');
    var title = n > 0 ? '(' + n + ') ' + bare : bare;
    if (document.title !== title) document.title = title;
  }

  // ---- asking
  document.addEventListener('gh-received', function (e) {
    var m = e.detail, end = /^delegation\.(completed|failed|cancelled)$/.test(m.type);
    if (!end && !/^approval\./.test(m.type) && m.type !== 'gap') return;
    if (end) {
      if (!on() || !m.task) return;
      tasks.add(m.task);
    }
    dirty = true;
    soon();
  });
  function soon() {
    if (!dirty || asking || timer || over) return;
    var wait = askedAt + PAUSE - Date.now();
    if (wait > 0) timer = setTimeout(function () { timer = null; ask(); }, wait);
    else ask();
  }
  function ask() {
    var about = Array.from(tasks).slice(0, 20).map(function (t) { return 'task=' + encodeURIComponent(t); });
    dirty = false; asking = true; askedAt = Date.now();
    tasks.clear();
    return fetch('/notices' + (about.length ? '?' + about.join('&') : ''), { credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' } }).then(function (res) {
      if (!res.ok || res.headers.get('Gatehouse-Session') !== session) return null;
      return res.json();
    }).then(function (said) {
      if (!said || over) return;
      badge(said.waiting);
      if (channel) channel.postMessage({ kind: 'waiting', n: said.waiting });
      show(said.items);
    }).catch(function () { /* the next event asks again */ }).then(function () { asking = false; soon(); });
  }

  // ---- showing
  // What waited at the last answer is no news; it is kept over pages and tabs.
  function fresh(items) {
    var key = 'noticed.' + session, known = stored(key), old = known ? known.split(' ') : [];
    stored(key, items.filter(function (i) { return i.kind === 'request'; }).map(function (i) { return i.id; }).join(' '));
    return items.filter(function (i) { return old.indexOf(i.id) < 0; });
  }
  function show(items) {
    if (!on()) return;
    var news = fresh(items);
    if (!news.length || here()) return;
    if (!channel) { news.forEach(notify); return; }
    var seen = false;
    looked = function () { seen = true; };
    channel.postMessage({ kind: 'looked?' });
    setTimeout(function () { looked = null; if (!seen && !over) news.forEach(notify); }, LISTEN);
  }
  function notify(item) {
    try {
      var n = new Notification(item.title, { body: item.text, tag: item.id });
      n.onclick = function () { window.focus(); n.close(); location.href = item.href; };
    } catch (e) { /* this browser shows none from a page */ }
  }
  function join() {
    if (!window.BroadcastChannel || over || channel) return;
    channel = new BroadcastChannel('gatehouse-notices ' + session);
    channel.onmessage = function (e) {
      if (e.data.kind === 'waiting') badge(e.data.n);
      if (e.data.kind === 'looked?' && here()) channel.postMessage({ kind: 'looked' });
      if (e.data.kind === 'looked' && looked) looked();
    };
  }
  function leave() {
    if (channel) channel.close();
    channel = null;
  }
  window.addEventListener('pagehide', leave); // or the browser could not keep the page for the way back
  window.addEventListener('pageshow', function (e) { if (e.persisted) join(); });
  document.addEventListener('gh-over', function () {
    over = true;
    clearTimeout(timer);
    stored('noticed.' + session, null);
    leave();
  });
  join();

  // ---- the setting
  var box = document.getElementById('notices');
  function draw() {
    if (!box) return;
    var words = box.querySelector('[data-notices-words]'), button = box.querySelector('button');
    var state = !can() ? 'none' : allowed() === 'denied' ? 'denied' : on() ? 'on' : 'off';
    words.textContent = words.getAttribute('data-' + state);
    button.textContent = button.getAttribute('data-' + (state === 'on' ? 'on' : 'off'));
    button.hidden = state === 'none' || state === 'denied';
    box.setAttribute('data-state', state);
  }
  if (box) {
    box.querySelector('button').addEventListener('click', function () {
      if (on()) { stored('notices', null); draw(); return; }
      Promise.resolve(Notification.requestPermission()).then(function (answer) {
        if (answer !== 'granted') { draw(); return; }
        stored('notices', 'on');
        draw();
        dirty = true;
        soon(); // what waits already is no news
      });
    });
    draw();
  }
  if (can() && navigator.permissions) {
    navigator.permissions.query({ name: 'notifications' }).then(function (s) {
      status = s;
      s.onchange = draw;
      draw();
    }, function () { /* Notification.permission says it */ });
  }
})();
