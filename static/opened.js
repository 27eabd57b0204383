// Which files of the review page were before the reader to their end. The server keeps it
// with the decision, apart from the reader's own marks, and asks for one tick less.
(function () {
  'use strict';
  var page = document.querySelector('.review'), to = page && page.dataset.openedTo;
  if (!to || !window.IntersectionObserver || !window.fetch || !window.URLSearchParams) return;
  var LOOK = 800; // milliseconds that the end of a file stays in sight
  var BATCH = 200, AGAIN = 5000, MOST = 500;
  // The bar covers the end of the page; verdict.js has closed its sheet by now.
  var bar = document.getElementById('review-bar'), seen = {}, waiting = [], timers = new Map(), posting = null, known = false;

  function numberOf(end) { var file = end.closest('.file'); return file ? file.id.slice(1) : ''; }
  // The tick that no file was opened goes away once the server knows of one.
  function settle() {
    var line = document.querySelector('#verdict [data-unviewed]');
    if (!known || !line) return;
    var sheet = line.closest('details'), focused = line.contains(document.activeElement);
    line.remove();
    if (!sheet.querySelector('input[name="tick"]')) sheet.classList.add('phone-only');
    if (focused) document.querySelector('#verdict .approve').focus();
  }
  function post() {
    posting = null;
    var files = waiting.splice(0, MOST), body = new URLSearchParams();
    if (!files.length) return;
    body.set('revision', page.dataset.revision);
    files.forEach(function (n) { body.append('file', n); });
    fetch(to, { method: 'POST', body: body, headers: { Accept: 'application/json' }, credentials: 'same-origin', keepalive: true }).then(function (r) {
      if (!r.ok || new URL(r.url).pathname === '/login') throw new Error('not kept');
      known = true;
      settle();
      if (waiting.length) later(BATCH);
    }).catch(function () {
      waiting = files.concat(waiting);
      later(AGAIN);
    });
  }
  function later(ms) { if (!posting) posting = setTimeout(post, ms); }
  function looked(end) {
    var n = numberOf(end);
    timers.delete(end);
    if (!end.isConnected || seen[n]) return;
    if (document.visibilityState !== 'visible') { start(end); return; }
    seen[n] = true;
    sight.unobserve(end);
    waiting.push(n);
    later(BATCH);
  }
  function start(end) { timers.set(end, setTimeout(looked, LOOK, end)); }
  var sight = new IntersectionObserver(function (entries) {
    entries.forEach(function (e) {
      var end = e.target;
      if (e.isIntersecting && !timers.has(end)) start(end);
      else if (!e.isIntersecting && timers.has(end)) { clearTimeout(timers.get(end)); timers.delete(end); }
    });
  }, { rootMargin: '0px 0px -' + (bar ? bar.offsetHeight : 0) + 'px 0px' });
  function watch(from) {
    Array.from(from.querySelectorAll('[data-file-end]')).forEach(function (end) { if (!seen[numberOf(end)]) sight.observe(end); });
  }
  watch(document);
  document.addEventListener('gh-redrawn', function (e) { if (e.detail) watch(e.detail); });
  document.addEventListener('gh-morphed', settle);
  document.addEventListener('gh-opened', function () { known = true; settle(); });
})();
