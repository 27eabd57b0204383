// What script adds to the auditor's pages: printing, times in the reader's own zone where
// the server did not know it yet, and how far a verification is.
(function () {
  'use strict';
  document.addEventListener('click', function (e) {
    if (e.target.closest && e.target.closest('[data-print]')) window.print();
  });

  // The server draws times in the zone that the cookie names; at the very first visit there
  // is none. The header keeps saying whose times these are.
  var zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  var head = document.querySelector('.zone');
  if (head && zone && head.dataset.zone !== zone) {
    document.querySelectorAll('time[data-minute]').forEach(function (t) {
      var d = new Date(t.dateTime);
      function two(n) { return String(n).padStart(2, '0'); }
      t.textContent = d.getFullYear() + '-' + two(d.getMonth() + 1) + '-' + two(d.getDate()) + ' ' + two(d.getHours()) + ':' + two(d.getMinutes());
    });
    head.textContent = '(' + zone + ')';
  }

  document.addEventListener('submit', function (e) {
    var form = e.target.closest('form[data-verify]');
    if (!form) return;
    form.querySelector('button').disabled = true;
    form.querySelector('[data-verify-say]').textContent = 'Reading every event. This page answers when it is done.';
  });
})();
