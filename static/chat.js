// The chat's own connection: it sends messages and shows what is going on until the page's
// live parts, which ask the server for themselves, show it for good. A message has a key
// from the moment that Enter is pressed and waits in this tab's storage until the server
// has named its task; whatever is cut on the way, it is sent again under the same key.
(function () {
  'use strict';
  var page = document.getElementById('chat'), form = document.getElementById('chat-form');
  if (!page) return;
  var log = document.getElementById('chat-log'), newer = document.getElementById('chat-new');
  var old = page.dataset.later === 'true', person = page.dataset.person, thread = page.dataset.thread;

  var pending = []; // messages that the server has not named a task for, or the page does not show yet

  // ---- the end of the conversation is followed until the reader scrolls up
  var stick = !old && (!location.hash || location.hash === '#chat-text'), height = 0;
  function scroller() { return document.scrollingElement; }
  function atEnd() { var s = scroller(); return s.scrollHeight - s.scrollTop - window.innerHeight < 48; }
  function toEnd() { scroller().scrollTop = scroller().scrollHeight; if (newer) newer.hidden = true; }
  function grown() {
    var now = scroller().scrollHeight;
    if (stick) toEnd();
    else if (now > height + 8 && newer && !old) newer.hidden = atEnd();
    height = scroller().scrollHeight;
  }
  window.addEventListener('scroll', function () {
    stick = !old && atEnd();
    if (stick && newer) newer.hidden = true;
  }, { passive: true });
  window.addEventListener('resize', function () { if (stick) toEnd(); });
  if (newer) newer.addEventListener('click', function () { stick = true; toEnd(); });

  // The list of threads is folded on a phone, and open beside the conversation.
  var threads = document.getElementById('chat-threads'), rows = document.getElementById('chat-thread-list');
  if (threads) {
    var wide = matchMedia('(min-width: 1100px)'), unfold = function () { threads.open = wide.matches; };
    unfold();
    wide.addEventListener('change', unfold);
  }

  function renew(el) { if (el && el.isConnected) window.htmx.trigger(el, 'gh-refresh'); }
  function item(task) { return document.getElementById('chat-' + task); }

  // Somebody's new task may be one's own from another tab: looked at, but not for each one.
  var looking = null;
  document.addEventListener('gh-event', function (e) {
    var m = e.detail, news = m.type === 'task.created' || m.type === 'approval.requested';
    if (!news || old || looking || item(m.task)) return;
    looking = setTimeout(function () { looking = null; renew(log); renew(rows); }, 1000);
  });
  document.addEventListener('gh-morphed', function () { settle(); grown(); });

  // ---- verdicts on cards. What is open is remembered here: a fresh part of the page
  // takes attributes away that the server does not know.
  var chosen = {}, deciding = {};
  page.addEventListener('click', function (e) {
    var b = e.target.closest('.card-form button[name="verdict"]');
    if (!b) return;
    var f = b.form, text = f.elements.comment;
    if (f.matches('.is-answer') || b.value === 'approve' || b.value === 'renew' || text.value.trim() || (b.value === 'reject' && f.classList.contains('writing') && chosen[f.id] === 'reject')) return;
    e.preventDefault(); // first the text is asked for; a rejection may go without
    f.classList.add('writing');
    chosen[f.id] = b.value;
    text.placeholder = b.value === 'reject' ? 'Why? Press Reject again to send; empty is possible.' : 'Say what to change, then press Request changes again.';
    text.focus();
  });
  page.addEventListener('keydown', function (e) {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey) || !e.target.closest('.card-text')) return;
    var f = e.target.form, b = f.matches('.is-answer') ? f.querySelector('button[value="answer"]') : chosen[f.id] && f.querySelector('button[value="' + chosen[f.id] + '"]');
    e.preventDefault();
    e.stopPropagation();
    if (b) f.requestSubmit(b);
  });
  page.addEventListener('submit', function (e) {
    var f = e.target, b = e.submitter;
    if (!f.matches('.card-form') || !b) return;
    e.preventDefault();
    if (deciding[f.id]) return;
    deciding[f.id] = true;
    var body = new URLSearchParams(new FormData(f));
    body.set(b.name, b.value);
    post(b.getAttribute('formaction') || f.getAttribute('action'), body).then(function (answer) {
      delete deciding[f.id];
      cardError(f, answer.ok ? '' : answer.text);
      if (answer.ok) { f.classList.remove('writing'); delete chosen[f.id]; }
      renew(f.closest('[data-live]'));
    });
  });
  function cardError(f, text) {
    var line = f.querySelector('.form-error');
    if (!line && text) {
      line = document.createElement('p');
      line.className = 'form-error';
      line.setAttribute('role', 'alert');
      f.parentNode.insertBefore(line, f);
    }
    if (line) line.textContent = text;
  }

  // post sends a form the way the page's script does. It never throws: gone says that
  // the server was not reached or did not get that far.
  function post(address, body) {
    return fetch(address, { method: 'POST', body: body, headers: { 'HX-Request': 'true' }, credentials: 'same-origin' }).then(function (res) {
      if (res.redirected && new URL(res.url).pathname === '/login' || res.status === 401) return { ok: false, signedOut: true, text: 'You are signed out. Sign in, then try again.' };
      return res.json().then(function (m) {
        return { ok: res.ok, gone: res.status >= 500, task: m.task_id, thread: m.thread, text: m.text || 'That failed on our side. Try again.' };
      }, function () { return { ok: false, gone: true, text: 'That failed on our side. Try again.' }; });
    }, function () { return { ok: false, gone: true, text: 'The server was not reached. Try again.' }; });
  }
  if (!form) { grown(); return; }

  // ---- drafts and messages that are not stored, kept for this person in this tab
  var text = form.elements.text, list = document.getElementById('chat-pending');
  function keep(name, value) {
    var key = 'gatehouse.chat.' + name + '.' + person + (name === 'draft' && thread ? '.' + thread : '');
    try {
      if (value === undefined) return sessionStorage.getItem(key);
      if (value) sessionStorage.setItem(key, value);
      else sessionStorage.removeItem(key);
    } catch (err) { /* storage may be switched off */ }
    return null;
  }
  if (!text.value) text.value = keep('draft') || '';
  text.addEventListener('input', function () { keep('draft', text.value); });
  try { pending = JSON.parse(keep('pending') || '[]'); } catch (err) { pending = []; }
  function save() { keep('pending', pending.length ? JSON.stringify(pending) : ''); }
  function newKey() {
    var b = crypto.getRandomValues(new Uint8Array(16));
    return 'chat-' + Array.from(b, function (x) { return x.toString(16).padStart(2, '0'); }).join('');
  }

  function el(tag, className, words) {
    var e = document.createElement(tag);
    if (className) e.className = className;
    if (words) e.textContent = words;
    return e;
  }
  function button(words, act) {
    var b = el('button', '', words);
    b.type = 'button';
    b.addEventListener('click', act);
    return b;
  }
  function draw() {
    list.textContent = '';
    var here = pending.filter(function (m) { return !thread || m.thread === thread; });
    list.hidden = !here.length;
    here.forEach(function (m) {
      var li = el('li', 'chat-item'), row = el('div', 'chat-row chat-mine'), by = el('p', 'chat-by'), body = el('div', 'chat-body');
      by.appendChild(el('b', '', 'you'));
      body.appendChild(el('div', 'chat-text', m.text));
      body.appendChild(el('p', 'chat-mark' + (m.error ? ' is-bad' : ''), m.error ? 'not sent: ' + m.error : m.task ? 'stored' : 'sending'));
      if (m.error) {
        var acts = el('p', 'chat-acts');
        acts.appendChild(button('Try again', function () { m.error = ''; save(); draw(); send(m); }));
        acts.appendChild(button('Edit', function () { drop(m.key); if (!text.value) text.value = m.text; keep('draft', text.value); text.focus(); }));
        body.appendChild(acts);
      }
      row.appendChild(by);
      row.appendChild(body);
      li.appendChild(row);
      list.appendChild(li);
    });
    grown();
  }
  function find(key) { return pending.find(function (m) { return m.key === key; }); }
  function drop(key) { pending = pending.filter(function (m) { return m.key !== key; }); save(); draw(); }
  // Once the conversation shows a message, its own copy goes.
  function settle() {
    var left = pending.filter(function (m) { return !(m.task && item(m.task)); });
    if (left.length !== pending.length) { pending = left; save(); draw(); }
  }
  function stored(key, task, into) {
    var m = find(key);
    if (!m) return;
    m.task = task;
    m.error = '';
    save();
    if (old) { drop(key); location.href = (thread ? '/chat?thread=' + thread : '/chat') + '#chat-' + task; return; }
    if (thread && into && into !== thread) { drop(key); if (m.begins) location.href = '/chat?thread=' + into; return; }
    draw();
    renew(log);
    renew(rows);
  }
  function refused(key, why) {
    var m = find(key);
    if (m && !m.task) { m.error = why; save(); draw(); }
  }

  // ---- sending: by the WebSocket while there is one, else by the form
  var ws = null, opened = false, tries = 0, timer = null, ACK = 10000;
  var WAITS = [500, 1000, 2000, 4000, 8000, 15000];
  function up() { return ws && ws.readyState === 1; }
  function send(m) {
    if (m.task || m.error) return;
    if (!up()) { if (!ws) again(); return; }
    ws.send(JSON.stringify({ type: 'chat', text: m.text, agent: m.agent, repository: m.repository, handoffs: !!m.handoffs, key: m.key, thread: m.thread || '' }));
    var through = ws;
    setTimeout(function () { // a connection that takes and gives nothing is dead
      if (find(m.key) && !m.task && !m.error && ws === through) { ws.close(); lost(through); }
    }, ACK);
  }
  function sendAll() { pending.forEach(send); }
  // Where no WebSocket gets through, the form does; one after the other, so that the
  // order stays.
  var posting = false;
  function postAll() {
    var m = pending.find(function (p) { return !p.task && !p.error; });
    if (!m || posting || over || up()) return;
    posting = true;
    post('/chat', new URLSearchParams({ text: m.text, agent: m.agent, repository: m.repository, handoffs: m.handoffs ? '1' : '', key: m.key, thread: m.thread || '' })).then(function (answer) {
      posting = false;
      if (answer.gone) return; // the next try to connect tries this again
      if (answer.ok) stored(m.key, answer.task, answer.thread);
      else refused(m.key, answer.text);
      postAll();
    });
  }
  // Once its session has ended the page sends nothing: it would be in another person's name.
  var over = false;
  document.addEventListener('gh-over', function () {
    over = true;
    clearTimeout(timer);
    if (ws) ws.close();
    Array.from(form.elements).forEach(function (el) { el.disabled = true; });
  });
  function connect() {
    clearTimeout(timer);
    if (over) return;
    if (!window.WebSocket) { postAll(); timer = setTimeout(connect, WAITS[Math.min(tries++, WAITS.length - 1)]); return; }
    var mine = new WebSocket(location.origin.replace(/^http/, 'ws') + '/ws');
    ws = mine;
    opened = false;
    mine.onopen = function () { opened = true; tries = 0; follow(); sendAll(); };
    mine.onmessage = function (e) { hear(JSON.parse(e.data)); };
    mine.onclose = function () { lost(mine); };
  }
  function lost(which) {
    if (ws !== which) return;
    ws = null;
    if (!opened) postAll();
    var wait = WAITS[Math.min(tries, WAITS.length - 1)];
    tries++;
    timer = setTimeout(connect, wait / 2 + Math.random() * wait / 2);
  }
  function again() { if (!ws) { tries = 0; connect(); } }
  window.addEventListener('online', again);
  window.addEventListener('pageshow', function (e) { if (e.persisted) again(); });
  window.addEventListener('pagehide', function () { clearTimeout(timer); if (ws) { ws.onclose = null; ws.close(); ws = null; } });
  document.addEventListener('visibilitychange', function () { if (!document.hidden) again(); });

  // What still happens is followed from the last event that the page shows.
  var FOLLOWED = 16;
  function follow() {
    var going = Array.from(log.querySelectorAll('.chat-item')).filter(function (i) {
      return /^(queued|running|waiting|checking|landing)$/.test(i.dataset.state);
    }).slice(-FOLLOWED);
    going.forEach(function (i) { ws.send(JSON.stringify({ type: 'chat', task_id: i.dataset.task, after: Number(i.dataset.n) })); });
  }

  // ---- what agents are writing, until the page shows it as stored
  var writing = {}, ended = {}, drawing = false;
  function written(m) {
    var id = m.delegation_id, was = writing[id];
    if (!was || m.part.turn < was.turn && m.part.offset === 0 && m.part.turn === 1) was = writing[id] = new window.ghParts.Message();
    if (was.take({ turn: m.part.turn, kind: m.part.kind, tool: m.part.tool, offset: m.part.offset, text: m.text }) && !drawing) {
      drawing = true;
      requestAnimationFrame(function () { drawing = false; drawParts(); });
    }
  }
  function drawParts() {
    Object.keys(writing).forEach(function (id) {
      var into = document.getElementById('live-' + id);
      if (into) writing[id].draw(into);
      else if (writing[id].empty()) delete writing[id];
    });
    grown();
  }
  document.addEventListener('gh-morphed', function () {
    Object.keys(ended).forEach(function (id) { if (writing[id]) writing[id].done(ended[id]); });
    ended = {};
    drawParts();
  });

  function hear(m) {
    if (m.key && m.task_id) stored(m.key, m.task_id, m.thread);
    if (m.type === 'error' && m.key && !m.task_id) {
      if (m.code === 'internal' || m.code === 'unavailable') setTimeout(function () { var p = find(m.key); if (p) send(p); }, 3000);
      else refused(m.key, m.text || m.message);
      return;
    }
    var at = m.task_id && item(m.task_id);
    if (!at) return;
    if (m.part) { written(m); return; }
    if (m.turn) ended[m.delegation_id] = m.turn; // its text is stored: the page will show it
    if (m.type === 'thinking' || m.type === 'progress') {
      var now = at.querySelector('[data-now]'), line = String(m.text || '').split('\n').filter(Boolean).pop() || '';
      if (now && line !== 'stored') now.textContent = window.ghParts.visible(line).slice(0, 160);
      return;
    }
    if (m.type === 'done') renew(rows);
    if (m.type === 'done') announce((m.agent || 'The task') + ': ' + m.state);
    if (m.type === 'message' || m.type === 'error' || m.type === 'done' || m.type === 'gap') renew(at);
  }
  var spoke = 0;
  function announce(words) {
    if (Date.now() - spoke < 5000) return;
    spoke = Date.now();
    document.getElementById('announce').textContent = words;
  }
  // ---- the composer. Files go by the form, and stay chosen until the server has them.
  var files = form.elements.files, sending = false;
  function sendFiles() {
    if (sending) return;
    sending = true;
    stick = !old;
    form.setAttribute('aria-busy', 'true');
    post('/chat', new FormData(form)).then(function (answer) {
      sending = false;
      form.removeAttribute('aria-busy');
      var error = document.getElementById('chat-error');
      error.hidden = answer.ok;
      error.textContent = answer.ok ? '' : answer.text;
      if (!answer.ok) return;
      text.value = '';
      keep('draft', '');
      if (old || thread && answer.thread !== thread) { location.href = (thread ? '/chat?thread=' + answer.thread : '/chat') + '#chat-' + answer.task; return; }
      files.value = '';
      files.dispatchEvent(new Event('change', { bubbles: true }));
      form.elements.key.value = newKey();
      renew(log);
      text.focus();
    });
  }
  form.addEventListener('submit', function (e) {
    e.preventDefault();
    var words = text.value;
    document.getElementById('chat-error').hidden = true;
    if (!words.trim()) return;
    var begins = /^\s*\/new(\s|$)/.test(words);
    if (begins && words.trim() === '/new') { text.value = ''; keep('draft', ''); location.href = '/chat#chat-text'; return; }
    if (files.files.length) { sendFiles(); return; }
    var m = { key: newKey(), text: words, thread: thread, begins: begins, agent: form.elements.agent.value, repository: form.elements.repository ? form.elements.repository.value : '',
      handoffs: form.elements.handoffs ? form.elements.handoffs.checked : false };
    pending.push(m);
    save();
    text.value = '';
    keep('draft', '');
    stick = !old;
    draw();
    send(m);
    text.focus();
  });
  text.addEventListener('keydown', function (e) {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    if (matchMedia('(pointer: coarse)').matches && !e.ctrlKey && !e.metaKey) return; // a phone's Enter is a new line
    e.preventDefault();
    e.stopPropagation();
    form.requestSubmit();
  });

  draw();
  settle();
  connect();
  if (location.hash === '#chat-text') text.focus();
  if (stick) requestAnimationFrame(toEnd);
  height = scroller().scrollHeight;
})();
