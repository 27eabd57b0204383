// One live connection per browser. The tabs elect a leader with Web Locks; it reads the
// stream and shares what it hears by BroadcastChannel. Without these, each tab has its own
// stream and a hidden tab closes it after 30 s. An event never carries content into the
// page: it only makes the parts that it concerns ask for themselves again.
(function () {
  'use strict';
  var url = document.body.getAttribute('data-stream');
  if (!url || !window.EventSource) return;

  var COALESCE = 300, HIDDEN = 30000, WAITS = [0, 1, 2, 4, 5], FAR = 15;
  // How long, in ms: without a beat the line is dead (the server's comes every 15 s), a try may
  // take to connect, parts are left alone while nothing is live. Tests set window.ghLive.
  function limit(name) { return (window.ghLive || {})[name] || { dead: 20000, connect: 5000, poll: 5000, answer: 1000 }[name]; }
  var source = null, last = new URL(url, location.href).searchParams.get('after') || '';
  var session = document.body.getAttribute('data-session') || '', over = false;
  // The last sign of life; before the first, the page is as of its loading. What is shown as
  // the begin of a loss is this, not the moment at which it was noticed.
  var lastLife = Date.now(), triedAt = 0, opened = false, polledAt = 0, asOf = 0, gone = false;
  var tries = 0, lostAt = null, retryAt = 0, timer = null, caught = 0, healing = false, leading = false, release = null;
  var line = document.getElementById('live-line');
  var dot = document.getElementById('live-dot');

  // ---- what the reader sees
  function clock(d) { return d.toLocaleTimeString([], { hour12: false }); }
  function setDot(state, words) {
    if (!dot) return;
    dot.setAttribute('data-live-state', state);
    dot.title = words;
    if (lostAt) dot.dataset.since = lostAt.getTime();
    else delete dot.dataset.since;
    dot.firstElementChild.textContent = words;
  }
  function say(text, ok, button, act) {
    line.textContent = '';
    line.hidden = !text;
    line.classList.toggle('is-ok', !!ok);
    if (!text) return;
    line.appendChild(document.createTextNode(text));
    if (button) {
      var b = document.createElement('button');
      b.type = 'button';
      b.textContent = button;
      b.addEventListener('click', act);
      line.appendChild(b);
    }
  }
  function showLost() {
    if (!lostAt || over) return;
    var s = Math.max(0, Math.round((retryAt - Date.now()) / 1000));
    setDot('lost', 'Not live since ' + clock(lostAt));
    var text = 'Not live since ' + clock(lostAt) + '. ' + (asOf > lostAt ? 'This page asked at ' + clock(new Date(asOf)) + '. ' : '') +
      (s > 0 ? 'Trying again in ' + s + ' s. ' : 'Trying again. ');
    say(text, false, 'Now', function () {
      tries = 1;
      if (leading || !channel) open();
      else lead(true); // the tab that leads may be asleep
      poll();
    });
  }
  function showLive(n) {
    if (over) return;
    setDot('on', 'Live');
    var healed = !!lostAt;
    lostAt = null;
    if (healed) {
      catchUp(); // what was asked for while the line was cut never came
      say('Live again.' + (n > 0 ? ' ' + n + (n === 1 ? ' event' : ' events') + ' caught up.' : ''), true);
      setTimeout(function () { if (!lostAt && !over) say(''); }, 3000);
    }
  }
  // The session of this page has ended: what stands here stays, and nothing is heard or
  // asked any more, for whoever signs in next in this browser may see other things.
  function end() {
    if (over) return;
    over = true;
    tell({ kind: 'over' });
    leave();
    clearTimeout(flushing);
    document.dispatchEvent(new CustomEvent('gh-over'));
    setDot('lost', 'Not live: signed out');
    say('You are signed out. What you see is as of ' + clock(new Date()) + '. ', false, 'Sign in', function () { location.reload(); });
  }
  function showGap(from, to) {
    say('Events ' + from + '–' + to + ' could not be replayed. ', false, 'Reload from the log', function () { location.reload(); });
  }

  // ---- asking the parts to renew themselves
  var dirty = new Set(), flushing = null;
  function mark(task) {
    document.querySelectorAll('[data-live]').forEach(function (el) {
      var scope = el.getAttribute('data-live');
      if (!task || scope === 'all' || scope === 'task:' + task) dirty.add(el);
    });
    if (dirty.size && !flushing) flushing = setTimeout(flush, COALESCE);
  }
  function flush() {
    flushing = null;
    if (document.hidden || over) return; // on return everything marked is asked at once
    var later = 0;
    dirty.forEach(function (el) {
      // A part that is dear to make says how long it wants to be left alone.
      var left = Number(el.dataset.livePace || 0) - (Date.now() - (el.ghAsked || 0));
      if (left > 0 && el.isConnected) { later = Math.max(later, left); return; }
      dirty.delete(el);
      el.ghAsked = Date.now();
      if (el.isConnected) window.htmx.trigger(el, 'gh-refresh');
    });
    if (later) flushing = setTimeout(flush, later);
  }
  // While nothing is live, the parts are asked for from time to time.
  function poll() { polledAt = Date.now(); catchUp(); }
  function catchUp() { mark(''); if (flushing) { clearTimeout(flushing); flush(); } }

  function heard(m) {
    if (m.type === 'gap') { showGap(m.from, m.to); mark(''); return; }
    mark(m.task);
    document.dispatchEvent(new CustomEvent('gh-event', { detail: m }));
  }

  // ---- the stream
  function receive(e) {
    lastLife = Date.now();
    if (e.lastEventId) last = e.lastEventId;
    var body = {};
    try { body = JSON.parse(e.data); } catch (err) { /* what cannot be read renews everything */ }
    var data = body.data || {};
    var m = { type: body.type, task: body.task_id || '', n: body.n || 0, from: data.from || body.from, to: data.to || body.to };
    caught++;
    document.dispatchEvent(new CustomEvent('gh-received', { detail: m })); // in one tab of all
    heard(m);
    tell({ kind: 'event', event: m, last: last });
  }
  function open() {
    if (over) return;
    close();
    var u = new URL(url, location.href);
    if (last) u.searchParams.set('after', last);
    triedAt = Date.now();
    opened = false;
    source = new EventSource(u.toString());
    source.addEventListener('alive', function () { lastLife = Date.now(); });
    source.onopen = function () {
      opened = true;
      lastLife = Date.now();
      caught = 0;
      healing = !!lostAt;
      tries = 0;
      setTimeout(function () { if (source) { showLive(caught); tell({ kind: 'state', state: 'on', n: caught, last: last }); } }, healing ? 1200 : 0);
    };
    source.onerror = function () {
      var answered = source.readyState === 2; // refused; where the line broke it would try again
      close();
      // A browser says so as well just before it leaves the page.
      if (answered) timer = setTimeout(function () { if (!gone) ask(u); }, 250);
      else again();
    };
    source.onmessage = receive; // every type: it stands in the body
  }
  function close() {
    clearTimeout(timer);
    if (source) { source.onerror = null; source.close(); source = null; }
  }
  // ask finds out why the server refused, which an EventSource does not tell.
  function ask(u) {
    var stop = new AbortController();
    setTimeout(function () { stop.abort(); }, 5000);
    fetch(u, { headers: { Accept: 'text/event-stream' }, credentials: 'same-origin', cache: 'no-store', signal: stop.signal }).then(function (res) {
      stop.abort();
      if (res.status === 401) end();
      else again();
    }, again);
  }
  // The first try after a loss is at once and silent; only its failure is said.
  function again() {
    if (gone || over) return;
    var wait = (document.hidden && tries >= WAITS.length ? FAR : WAITS[Math.min(tries, WAITS.length - 1)]) * (800 + 400 * Math.random());
    if (tries > 0 && !lostAt) lostAt = new Date(lastLife);
    tries++;
    retryAt = Date.now() + wait;
    if (lostAt) { showLost(); tell({ kind: 'state', state: 'lost', since: lostAt.getTime(), retry: retryAt }); }
    timer = setTimeout(open, wait);
  }
  setInterval(function () {
    var now = Date.now();
    // Who was silent for so long, or does not even begin to answer, is not there: no silent try.
    if (source && (opened ? now - lastLife > limit('dead') : now - triedAt > limit('connect'))) {
      close();
      tries = Math.max(tries, 1);
      again();
    }
    if (lostAt && !document.hidden && !over) {
      showLost();
      if (now - polledAt > limit('poll')) poll();
    }
  }, 250);
  document.body.addEventListener('htmx:afterOnLoad', function (e) {
    if (e.detail.elt.hasAttribute('data-live')) asOf = Date.now();
  });

  // ---- one connection for all tabs
  var shared = !!(navigator.locks && window.BroadcastChannel);
  var channel = null;
  function tell(m) { if (channel && leading) channel.postMessage(m); }
  function listen(m) {
    if (m.kind === 'hello' && leading) {
      channel.postMessage({ kind: 'state', state: lostAt ? 'lost' : 'on', since: lostAt && lostAt.getTime(), retry: retryAt, last: last, hello: true });
      return;
    }
    if (leading) return;
    answered = true;
    if (m.kind === 'over') { end(); return; }
    if (m.kind === 'event') { last = m.last || last; heard(m.event); }
    if (m.kind === 'state' && m.state === 'on') {
      showLive(m.n || 0);
      if (m.hello && m.last !== last) { last = m.last; catchUp(); }
    }
    if (m.kind === 'state' && m.state === 'lost') { lostAt = new Date(m.since); retryAt = m.retry; showLost(); }
  }
  function join() {
    if (!shared) { open(); return; }
    var name = 'gatehouse-live ' + session; // another person's tabs in this browser hear nothing
    channel = new BroadcastChannel(name);
    channel.onmessage = function (e) { listen(e.data); };
    channel.postMessage({ kind: 'hello' });
    lead(false);
  }
  // lead waits for the lock of the tab that has the stream; steal takes it over from a tab
  // that may be asleep, which then is a follower.
  var answered = false;
  function lead(steal) {
    var mine = channel;
    navigator.locks.request('gatehouse-live ' + session, { steal: steal }, function () {
      if (!channel || channel !== mine) return undefined;
      leading = true;
      open();
      return new Promise(function (done) { release = done; });
    }).catch(function () {
      if (!channel || channel !== mine || over) return;
      close();
      leading = false;
      release = null;
      lead(false);
    });
  }
  function leave() {
    close();
    leading = false;
    if (channel) { channel.close(); channel = null; }
    if (release) { release(); release = null; }
  }

  var hiddenTimer = null;
  document.addEventListener('visibilitychange', function () {
    clearTimeout(hiddenTimer);
    if (over) return;
    if (document.hidden) {
      if (!shared) hiddenTimer = setTimeout(close, HIDDEN);
      return;
    }
    if ((leading || !shared) && !source) { tries = 0; open(); }
    if (channel && !leading) {
      answered = false;
      channel.postMessage({ kind: 'hello' });
      setTimeout(function () { if (channel && !answered && !leading && !document.hidden) lead(true); }, limit('answer'));
    }
    catchUp();
  });
  window.addEventListener('pagehide', function () { gone = true; leave(); });
  window.addEventListener('pageshow', function (e) { gone = false; if (e.persisted && !over) { join(); catchUp(); } });
  window.addEventListener('online', function () { if (leading || !shared) { tries = 0; open(); } catchUp(); });

  // A part whose question was lost on the way asks again.
  document.body.addEventListener('htmx:sendError', function (e) {
    if (!e.detail.elt.hasAttribute('data-live')) return;
    if (lostAt) return; // it is asked for again soon
    dirty.add(e.detail.elt);
    if (!flushing) flushing = setTimeout(flush, 3000);
  });
  document.body.addEventListener('htmx:responseError', function (e) {
    var status = e.detail.xhr.status;
    if (status === 401) end();
  });
  // A session that ended answers with the sign-in page, and one that another person began
  // with theirs: neither may be merged into this one.
  document.body.addEventListener('htmx:beforeSwap', function (e) {
    var xhr = e.detail.xhr, to = xhr.responseURL ? new URL(xhr.responseURL) : null;
    var whose = xhr.getResponseHeader('Gatehouse-Session');
    if (to && to.pathname === '/login' || whose !== null && whose !== session) {
      e.detail.shouldSwap = false;
      end();
    }
  });
  setDot('off', 'Connecting');
  join();
})();
